// Memory of one evaluation.
#pragma once

#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace keelson::cel {

// Everything that an evaluation makes lives until its arena goes. Small evaluations allocate nothing. Not for concurrent
// use.
class Arena {
 public:
  Arena() : memory_(first_, sizeof(first_)) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (; cleanups_; cleanups_ = cleanups_->next) cleanups_->destroy(cleanups_->object);
  }

  template <typename T, typename... A>
  T* New(A&&... args) {
    T* object = new (memory_.allocate(sizeof(T), alignof(T))) T(std::forward<A>(args)...);
    if constexpr (!std::is_trivially_destructible_v<T>) {
      cleanups_ = new (memory_.allocate(sizeof(Cleanup), alignof(Cleanup)))
          Cleanup{object, [](void* p) { static_cast<T*>(p)->~T(); }, cleanups_};
    }
    return object;
  }

  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {};
    char* data = static_cast<char*>(memory_.allocate(text.size(), 1));
    std::memcpy(data, text.data(), text.size());
    return {data, text.size()};
  }

  template <typename T>
  std::span<T> CopySpan(std::span<const T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (items.empty()) return {};
    T* data = static_cast<T*>(memory_.allocate(items.size_bytes(), alignof(T)));
    std::memcpy(static_cast<void*>(data), items.data(), items.size_bytes());
    return {data, items.size()};
  }

 private:
  struct Cleanup {
    void* object;
    void (*destroy)(void*);
    Cleanup* next;
  };

  alignas(16) char first_[1024];
  std::pmr::monotonic_buffer_resource memory_;
  Cleanup* cleanups_ = nullptr;
};

}  // namespace keelson::cel
