// Runs on the emulated CPU: enables its register states, fetches arrays from the ROM, calls the function, says results.
#include <stddef.h>
#include <stdint.h>

enum { CONSOLE = 0xe9, POWER = 0x8900, ARGUMENTS = 6 };

// Written into the ROM by rom.py.
struct piece { uint64_t to, from, bytes; };
struct job {
    uint64_t arguments[ARGUMENTS];
    uint64_t loads, results;
    struct piece pieces[16]; // what to load, then what to say
};

typedef int64_t function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
extern function under_test;
extern uint8_t bss_start[], bss_end[], stack_top[], vectors[];

static void put(uint16_t port, const void *from, size_t bytes) {
    __asm__ volatile("rep outsb" : "+S"(from), "+c"(bytes) : "d"(port) : "memory");
}

static void say(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    put(CONSOLE, text, length);
}

static void say_number(uint64_t value) {
    char digits[17];
    for (int i = 15; i >= 0; i--, value >>= 4) digits[i] = "0123456789abcdef"[value & 15];
    digits[16] = 0;
    say(digits);
}

__attribute__((noreturn)) static void power_off(void) {
    put(POWER, "Shutdown", 8);
    for (;;) __asm__ volatile("hlt");
}

// Compilers call these.
void *memcpy(void *to, const void *from, size_t bytes) {
    uint8_t *end = to;
    __asm__ volatile("rep movsb" : "+D"(end), "+S"(from), "+c"(bytes) : : "memory");
    return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
    if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, bytes);
    volatile uint8_t *into = to;
    for (const uint8_t *source = from; bytes--;) into[bytes] = source[bytes];
    return to;
}

void *memset(void *to, int byte, size_t bytes) {
    uint8_t *end = to;
    __asm__ volatile("rep stosb" : "+D"(end), "+c"(bytes) : "a"(byte) : "memory");
    return to;
}

__attribute__((noreturn, used)) static void fail(uint64_t vector, uint64_t address) {
    say("\n!! exception ");
    say_number(vector);
    say(" at ");
    say_number(address);
    say("\n");
    power_off();
}

// 16 bytes for each exception. Of some the CPU pushes an error code, which stands in front of the address.
__asm__(
    ".text\n.balign 16\nvectors:\n.set number, 0\n.rept 32\n.balign 16\n"
    ".if number == 8 || (number >= 10 && number <= 14) || number == 17 || number == 21\n add $8, %rsp\n.endif\n"
    " mov $number, %edi\n jmp raise\n.set number, number + 1\n.endr\n"
    "raise:\n pop %rsi\n and $-16, %rsp\n call fail\n");

static void catch_exceptions(void) {
    static struct { uint16_t low, selector, type, middle; uint32_t high, reserved; } gates[32];
    struct __attribute__((packed)) { uint16_t limit; const void *base; } pointer = {sizeof gates - 1, gates};
    for (uint64_t i = 0; i < 32; i++) {
        uint64_t to = (uint64_t)vectors + 16 * i;
        gates[i].low = to, gates[i].middle = to >> 16, gates[i].high = to >> 32;
        gates[i].selector = 8, gates[i].type = 0x8e00;
    }
    __asm__ volatile("lidt %0" : : "m"(pointer));
}

static uint64_t cpuid(uint32_t leaf, int high, int low) {
    uint32_t found[4];
    __asm__ volatile("cpuid" : "=a"(found[0]), "=b"(found[1]), "=c"(found[2]), "=d"(found[3]) : "a"(leaf), "c"(0));
    return (uint64_t)found[high] << 32 | found[low];
}

// What an operating system does: XCR0 gets x87, SSE, AVX, AVX-512 and tiles, as far as the CPU has them.
static uint64_t enable_states(void) {
    uint64_t cr4, wanted = 0x7 | 0xe0 | 0x60000;
    if (!(cpuid(1, 3, 2) >> 26 & 1)) return 0;
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("mov %0, %%cr4" : : "r"(cr4 | 1 << 18));
    wanted &= cpuid(13, 3, 0);
    __asm__ volatile("xsetbv" : : "a"((uint32_t)wanted), "d"((uint32_t)(wanted >> 32)), "c"(0));
    return wanted;
}

__attribute__((noreturn, used)) static void run(const struct job *job) {
    memset(bss_start, 0, bss_end - bss_start);
    catch_exceptions();
    say("\n@@ states ");
    say_number(enable_states());
    const struct piece *piece = job->pieces;
    for (uint64_t i = 0; i < job->loads; i++, piece++) memcpy((void *)piece->to, (const void *)piece->from, piece->bytes);
    const uint64_t *of = job->arguments;
    int64_t status = under_test(of[0], of[1], of[2], of[3], of[4], of[5]);
    say(" status ");
    say_number(status);
    say("\n");
    for (uint64_t i = 0; i < job->results; i++, piece++) put(CONSOLE, (const void *)piece->from, piece->bytes);
    say("\n@@ done\n");
    power_off();
}

__asm__(".section .entry, \"ax\"\n lea stack_top(%rip), %rsp\n mov $JOB, %edi\n call run\n .text\n");
__asm__(".bss\n .balign 64\n .skip 0x100000\nstack_top:\n .text\n");
