// Mutex with clang's thread-safety annotations: mark what it guards with GUARDED_BY, and clang checks it.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KEELSON_TSA(x) __attribute__((x))
#else
#define KEELSON_TSA(x)
#endif

// absl, which gRPC's headers include, defines some of these names to the same effect.
#undef CAPABILITY
#undef SCOPED_CAPABILITY
#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef REQUIRES
#undef EXCLUDES
#undef ACQUIRE
#undef RELEASE
#undef NO_THREAD_SAFETY_ANALYSIS

#define CAPABILITY(x) KEELSON_TSA(capability(x))
#define SCOPED_CAPABILITY KEELSON_TSA(scoped_lockable)
#define GUARDED_BY(x) KEELSON_TSA(guarded_by(x))
#define PT_GUARDED_BY(x) KEELSON_TSA(pt_guarded_by(x))
#define REQUIRES(...) KEELSON_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) KEELSON_TSA(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) KEELSON_TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...) KEELSON_TSA(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS KEELSON_TSA(no_thread_safety_analysis)

namespace keelson {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits on a Mutex that the caller holds:  while (!ready_) cv_.wait(mutex_);
// std::condition_variable_any also offers wait(mutex, stop_token, predicate).
using CondVar = std::condition_variable_any;

}  // namespace keelson
