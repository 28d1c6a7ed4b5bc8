// Mutex with clang's thread-safety annotations: mark what it guards with KEELSON_GUARDED_BY, and clang checks it.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KEELSON_TSA(x) __attribute__((x))
#else
#define KEELSON_TSA(x)
#endif

#define KEELSON_CAPABILITY(x) KEELSON_TSA(capability(x))
#define KEELSON_SCOPED_CAPABILITY KEELSON_TSA(scoped_lockable)
#define KEELSON_GUARDED_BY(x) KEELSON_TSA(guarded_by(x))
#define KEELSON_PT_GUARDED_BY(x) KEELSON_TSA(pt_guarded_by(x))
#define KEELSON_REQUIRES(...) KEELSON_TSA(requires_capability(__VA_ARGS__))
#define KEELSON_EXCLUDES(...) KEELSON_TSA(locks_excluded(__VA_ARGS__))
#define KEELSON_ACQUIRE(...) KEELSON_TSA(acquire_capability(__VA_ARGS__))
#define KEELSON_RELEASE(...) KEELSON_TSA(release_capability(__VA_ARGS__))
#define KEELSON_NO_THREAD_SAFETY_ANALYSIS KEELSON_TSA(no_thread_safety_analysis)

namespace keelson {

class KEELSON_CAPABILITY("mutex") Mutex {
 public:
  void lock() KEELSON_ACQUIRE() { mutex_.lock(); }
  void unlock() KEELSON_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class KEELSON_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KEELSON_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() KEELSON_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits on a Mutex that the caller holds:  while (!ready_) cv_.wait(mutex_);
// std::condition_variable_any also offers wait(mutex, stop_token, predicate).
using CondVar = std::condition_variable_any;

}  // namespace keelson
