// Loaded into Bochs 3.1, whose products of tiles of bytes take signed bytes for unsigned ones (TDPBUUD is right).
//
// A byte of which the upper bit is a sign is 256 less than Bochs takes it for, so that its products are too large by 256
// times the other factor. That is taken from the sums before, and the rest left to TDPBUUD, which also checks
// the shapes. Where a Bochs is not built as is expected here, it is not started.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, CODE_SEARCHED = 192 };

// As Bochs has it behind a pointer of the CPU; tiles are aligned to 64 bytes.
struct tiles {
    uint32_t palette, start_row;
    struct { uint32_t rows, row_bytes; } shapes[TILES];
    uint8_t registers[TILES][ROWS][ROW_BYTES] __attribute__((aligned(64)));
};

typedef void handler(char *cpu, const uint8_t *instruction);
static handler *multiply_unsigned;
static uint32_t tiles_offset;

static void stop(const char *why) {
    fprintf(stderr, "tile_signs: %s\n", why);
    _exit(3);
}

static void multiply(char *cpu, const uint8_t *instruction, int has_sign_a, int has_sign_b) {
    struct tiles *tiles;
    memcpy(&tiles, cpu + tiles_offset, sizeof tiles);
    const uint8_t sums = instruction[36], a = instruction[37], b = instruction[38];
    if (sums < TILES && a < TILES && b < TILES) {
        const uint32_t rows = tiles->shapes[sums].rows, columns = tiles->shapes[sums].row_bytes / 4;
        const uint32_t k_groups = tiles->shapes[b].rows;
        for (uint32_t row = 0; row < rows && row < ROWS; row++)
            for (uint32_t column = 0; column < columns && column < ROWS; column++)
                for (uint32_t k = 0; k < k_groups && k < ROWS; k++)
                    for (uint32_t tap = 0; tap < 4; tap++) {
                        uint8_t *sum = &tiles->registers[sums][row][4 * column];
                        int32_t x = tiles->registers[a][row][4 * k + tap];
                        int32_t y = tiles->registers[b][k][4 * column + tap];
                        int32_t less_x = has_sign_a && x >= 128 ? 256 : 0, less_y = has_sign_b && y >= 128 ? 256 : 0;
                        uint32_t total;
                        memcpy(&total, sum, sizeof total);
                        total -= (uint32_t)(less_x * y + x * less_y - less_x * less_y);
                        memcpy(sum, &total, sizeof total);
                    }
    }
    multiply_unsigned(cpu, instruction);
}

static void usd(char *cpu, const uint8_t *instruction) { multiply(cpu, instruction, 0, 1); }
static void sud(char *cpu, const uint8_t *instruction) { multiply(cpu, instruction, 1, 0); }
static void ssd(char *cpu, const uint8_t *instruction) { multiply(cpu, instruction, 1, 1); }

static uint8_t *code_of(const char *name) {
    char symbol[96];
    snprintf(symbol, sizeof symbol, "_ZN8BX_CPU_C19%s_TnnnTrmTregEP15bxInstruction_c", name);
    uint8_t *found = dlsym(RTLD_DEFAULT, symbol);
    if (!found) stop("products of tiles are not where they are looked for");
    return found;
}

// movabs $to, %rax; jmp *%rax
static void redirect(const char *name, handler *to) {
    uint8_t *code = code_of(name), jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    memcpy(jump + 2, &to, sizeof to);
    const uintptr_t page = sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)code & ~(page - 1));
    if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC)) stop("its code cannot be changed");
    memcpy(code, jump, sizeof jump);
}

// The first pointer that the handler loads from far inside of the CPU: mov offset(%register), %register.
static uint32_t offset_of_tiles(const uint8_t *code) {
    for (int i = 0; i < CODE_SEARCHED; i++) {
        uint32_t offset;
        memcpy(&offset, code + i + 3, sizeof offset);
        const int is_load = (code[i] & 0xf8) == 0x48 && code[i + 1] == 0x8b && (code[i + 2] & 0xc0) == 0x80;
        if (is_load && offset >= 0x1100 && offset < 0x1000000) return offset;
    }
    stop("it is not the Bochs that is expected");
    return 0;
}

__attribute__((constructor)) static void install(void) {
    const uint8_t *code = code_of("TDPBUUD");
    tiles_offset = offset_of_tiles(code);
    multiply_unsigned = (handler *)code;
    redirect("TDPBUSD", usd);
    redirect("TDPBSUD", sud);
    redirect("TDPBSSD", ssd);
}
