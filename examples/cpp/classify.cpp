// Classifies pictures on several threads at once: a network with an input and an output of uint8.
//
//   qdialect-compile model.tflite -o model.so
//   c++ -std=c++20 -O2 -pthread -I. classify.cpp ./model.so -Wl,-rpath,. -o classify
//   ./classify picture0.bin picture1.bin ...
//
// Each file holds the raw numbers of a picture; the class with the largest score is printed for each.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "model.hpp"

namespace {

std::vector<std::uint8_t> read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The class of a picture, or what is wrong with it.
std::string classified(const std::string &path) {
  try {
    const std::vector<std::uint8_t> picture = read(path);
    std::vector<std::uint8_t> scores(MODEL_OUTPUT_0_SIZE);
    // One for each thread: it owns the memory that a call works in.
    qdialect::model_network network;
    network.run(picture, scores);
    const auto best = std::max_element(scores.begin(), scores.end());
    return "class " + std::to_string(best - scores.begin()) + ", score " + std::to_string(*best);
  } catch (const std::exception &error) {
    return std::string("error: ") + error.what();
  }
}

}  // namespace

int main(int count, char **arguments) {
  const std::vector<std::string> paths(arguments + 1, arguments + count);
  std::vector<std::string> found(paths.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = classified(paths[i]); });
  }
  for (std::thread &thread : threads) thread.join();
  bool is_good = true;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::cout << paths[i] << ": " << found[i] << "\n";
    is_good = is_good && found[i].starts_with("class");
  }
  return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
