/* Starts a program and reports its wait status, which inits and container engines do not pass on:
 * they turn a signal into the exit code 128 + its number, with which programs also exit.
 *
 *     reporter FD PROGRAM [ARGUMENT...]     writes to an open descriptor, which the program lacks
 *     reporter /PATH PROGRAM [ARGUMENT...]  writes to a file, and passes signals on
 *
 * It writes ` wait-status=N `, and exits as an init would. It needs no C library and no data, so
 * that it runs in any image. After a change, run `python -m tests.worker.isolation.build_reporter`.
 */
typedef unsigned long word;

#if defined(__x86_64__)
enum { WRITE = 1, SIGPROCMASK = 14, CLONE = 56, EXECVE = 59, WAIT4 = 61, KILL = 62, FCNTL = 72,
       SIGTIMEDWAIT = 128, PRCTL = 157, EXIT_GROUP = 231, OPENAT = 257 };
__asm__("  mov %rsp, %rdi\n  and $-16, %rsp\n  call run\n");
#define ADDRESS(name) ({ char *at; __asm__("lea " #name "(%%rip), %0" : "=r"(at)); at; })
#define INLINE static inline __attribute__((always_inline))
INLINE long call(long number, word a, word b, word c, word d, word e) {
    register word r10 __asm__("r10") = d;
    register word r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
enum { FCNTL = 25, OPENAT = 56, WRITE = 64, EXIT_GROUP = 94, KILL = 129, SIGPROCMASK = 135,
       SIGTIMEDWAIT = 137, PRCTL = 167, CLONE = 220, EXECVE = 221, WAIT4 = 260 };
__asm__("  mov x0, sp\n  b run\n");
#define ADDRESS(name) ({ char *at; __asm__("adr %0, " #name : "=r"(at)); at; })
#define INLINE static inline __attribute__((always_inline))
INLINE long call(long number, word a, word b, word c, word d, word e) {
    register word x8 __asm__("x8") = (word)number;
    register word x0 __asm__("x0") = a;
    register word x1 __asm__("x1") = b;
    register word x2 __asm__("x2") = c;
    register word x3 __asm__("x3") = d;
    register word x4 __asm__("x4") = e;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                     : "memory");
    return (long)x0;
}
#endif

#define AT_CWD ((word)-100)
#define WRITE_CLOSE_ON_EXEC 02000001
#define CHILD_ENDED 17 /* SIGCHLD */
#define NO_HANG 1
#define SET_CLOSE_ON_EXEC 2, 1 /* F_SETFD, FD_CLOEXEC */
#define SET_DUMPABLE 4
#define BLOCK 0
#define SET 2
#define NOT_THERE (-2)  /* -ENOENT */
#define FORBIDDEN (-13) /* -EACCES */
#define LONGEST_PATH 4096

__asm__("path_name: .ascii \"PATH=\"\n"
        "usual_path: .asciz \"/usr/local/bin:/usr/bin:/bin\"\n"
        "reason: .asciz \"windlass: failed to exec \"\n"
        "line_end: .asciz \"\\n\"\n"
        "report: .asciz \" wait-status=\"\n"
        ".balign 16\n");

INLINE word length(const char *text) {
    word size = 0;
    while (*(volatile const char *)(text + size)) size++;
    return size;
}

INLINE void print(int fd, const char *text) {
    call(WRITE, (word)fd, (word)text, length(text), 0, 0);
}

/* Tries each folder of a search path as execvp does; returns why the program was not started. */
INLINE long search(char **argv, char **env, const char *folders) {
    char path[LONGEST_PATH];
    long error = NOT_THERE;
    for (;;) {
        word size = 0;
        for (; *folders && *folders != ':'; folders++)
            if (size < LONGEST_PATH / 2) path[size++] = *folders;
        if (!size) path[size++] = '.';
        path[size++] = '/';
        for (word i = 0; argv[0][i] && size < LONGEST_PATH - 1; i++) path[size++] = argv[0][i];
        path[size] = 0;
        long now = call(EXECVE, (word)path, (word)argv, (word)env, 0, 0);
        if (now == FORBIDDEN || error == NOT_THERE) error = now;
        if (!*folders++) return error;
    }
}

INLINE void become(char **argv, char **env) {
    char *folders = ADDRESS(usual_path), *name = ADDRESS(path_name);
    int direct = 0;
    for (word i = 0; argv[0][i]; i++) direct |= argv[0][i] == '/';
    for (char **each = env; *each; each++) {
        word i = 0;
        while (i < 5 && (*each)[i] == name[i]) i++;
        if (i == 5) folders = *each + 5;
    }
    long error = direct ? call(EXECVE, (word)argv[0], (word)argv, (word)env, 0, 0)
                        : search(argv, env, folders);
    print(2, ADDRESS(reason));
    print(2, argv[0]);
    print(2, ADDRESS(line_end));
    call(EXIT_GROUP, error == NOT_THERE ? 127 : 126, 0, 0, 0, 0);
}

/* Reports a wait status and exits with what an init makes of it. */
INLINE void end(int fd, unsigned status) {
    char text[12];
    word at = sizeof text - 1;
    unsigned rest = status;
    text[at] = 0;
    text[--at] = ' ';
    do text[--at] = '0' + rest % 10;
    while (rest /= 10);
    char line[32];
    word size = 0;
    for (const char *c = ADDRESS(report); *c; c++) line[size++] = *c;
    for (; text[at]; at++) line[size++] = text[at];
    call(WRITE, (word)fd, (word)line, size, 0, 0);
    unsigned number = status & 127;
    call(EXIT_GROUP, number ? 128 + number : status >> 8 & 255, 0, 0, 0, 0);
}

__attribute__((noreturn, used)) static void run(word *stack) {
    char **argv = (char **)(stack + 1), **env = argv + stack[0] + 1;
    int passes_on = argv[1][0] == '/', fd = 0;
    word all = ~0UL, before = 0;
    if (passes_on)
        fd = (int)call(OPENAT, AT_CWD, (word)argv[1], WRITE_CLOSE_ON_EXEC, 0, 0);
    else
        for (char *c = argv[1]; *c; c++) fd = fd * 10 + (*c - '0');
    call(FCNTL, (word)fd, SET_CLOSE_ON_EXEC, 0, 0);
    /* The program cannot reach our descriptor through /proc. */
    call(PRCTL, SET_DUMPABLE, 0, 0, 0, 0);
    call(SIGPROCMASK, BLOCK, (word)&all, (word)&before, 8, 0);
    long child = call(CLONE, CHILD_ENDED, 0, 0, 0, 0);
    if (!child) {
        call(SIGPROCMASK, SET, (word)&before, 0, 8, 0);
        become(argv + 2, env);
    }
    while (child > 0) {
        int status = 0;
        long number = call(SIGTIMEDWAIT, (word)&all, 0, 0, 8, 0), ended;
        if (number != CHILD_ENDED) {
            if (passes_on && number > 0) call(KILL, (word)child, (word)number, 0, 0, 0);
            continue;
        }
        while ((ended = call(WAIT4, (word)-1, (word)&status, NO_HANG, 0, 0)) > 0)
            if (ended == child) end(fd, (unsigned)status);
    }
    for (;;) call(EXIT_GROUP, 126, 0, 0, 0, 0);
}
