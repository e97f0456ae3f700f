# From the reset vector to 64-bit mode in one step, then a copy of the program to RAM and a jump to it.
#
# This is the last 64 KiB of the ROM. Page tables are in the ROM as well, complete, so that nothing writes them.
# PAGES, PROGRAM, PROGRAM_BYTES and ORIGIN are defined where it is assembled (see rom.py).
    .section .text, "ax"
    .code16
start:
    cli
    movl $PAGES, %eax
    movl %eax, %cr3
    movl $0x620, %eax                   # CR4: PAE, OSFXSR, OSXMMEXCPT
    movl %eax, %cr4
    movl $0xc0000080, %ecx              # EFER: long mode
    xorl %edx, %edx
    movl $0x100, %eax
    wrmsr
    lgdtl %cs:(gdt_pointer - start)
    movl $0x80000033, %eax              # CR0: paging, NE, ET, MP, protection
    movl %eax, %cr0
    ljmpl $8, $long_mode

    .code64
long_mode:
    movl $16, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl $PROGRAM, %esi
    movl $ORIGIN, %edi
    movl $PROGRAM_BYTES, %ecx
    cld
    rep movsb
    movl $ORIGIN, %eax
    jmp *%rax

    .balign 8
gdt:                                    # accessed bits are set: the CPU cannot set them here
    .quad 0
    .quad 0x00af9b000000ffff            # 8: 64-bit code
    .quad 0x00cf93000000ffff            # 16: data
gdt_pointer:
    .word . - gdt - 1
    .long gdt

    .section .reset, "ax"
    .code16
    jmp start
