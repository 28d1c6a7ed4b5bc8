// Preloaded into a program: its wall clock is ahead of the machine's by the nanoseconds in CLOCK_FILE, which may change at
// any time. The steady clocks stay as they are, and so do waits until a wall clock time: the kernel gets them in its own time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t kSecond = 1000000000;
static const volatile int64_t none;
static const volatile int64_t* ahead = &none;

__attribute__((constructor)) static void Open(void) {
  const char* path = getenv("CLOCK_FILE");
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* at = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (at != MAP_FAILED) ahead = at;
}

static long Call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  const long result = x0;
#else
#error "neither x86_64 nor aarch64"
#endif
  return result;
}

static long Returned(long result) {
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

static struct timespec Moved(const struct timespec* time, int64_t by) {
  const int64_t sum = time->tv_sec * kSecond + time->tv_nsec + by;
  const struct timespec out = {sum / kSecond, sum % kSecond};
  return out;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const long result = Call(SYS_clock_gettime, clock, (long)out, 0, 0, 0, 0);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *out = Moved(out, *ahead);
  return (int)Returned(result);
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

// Abseil, and with it gRPC, waits by futexes of its own.
long syscall(long number, ...) {
  long arg[6];
  va_list args;
  va_start(args, number);
  for (int i = 0; i < 6; ++i) arg[i] = va_arg(args, long);
  va_end(args);
  struct timespec until;
  if (number == SYS_futex && (arg[1] & FUTEX_CLOCK_REALTIME) != 0 && arg[3] != 0) {
    until = Moved((const struct timespec*)arg[3], -*ahead);
    arg[3] = (long)&until;
  }
  return Returned(Call(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]));
}

// Times of a steady clock, which condition variables may have too, are those of a machine that has run for less than years.
int pthread_cond_timedwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  if (!real) *(void**)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  const struct timespec moved = until->tv_sec > 1000000000 ? Moved(until, -*ahead) : *until;
  return real(condition, mutex, &moved);
}

int pthread_cond_clockwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           clockid_t clock, const struct timespec* restrict until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  const struct timespec moved = clock == CLOCK_REALTIME ? Moved(until, -*ahead) : *until;
  return real(condition, mutex, clock, &moved);
}
