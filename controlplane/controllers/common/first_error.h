// Collects errors of concurrent calls, and keeps the first one.
#pragma once

#include <optional>

#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::controllers {

class FirstError {  // thread safe
 public:
  void Note(const Error& error) {
    MutexLock lock(mutex_);
    if (!error_) error_ = error;
  }
  Result<> Take() {
    MutexLock lock(mutex_);
    if (error_) return *error_;
    return {};
  }

 private:
  Mutex mutex_;
  std::optional<Error> error_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::controllers
