// The storage of FakeApi: objects of every kind, and the log of their changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::client {

class FakeStore {  // not thread safe
 public:
  using Message = google::protobuf::Message;
  using Object = std::shared_ptr<const Message>;
  struct LogEntry {
    uint64_t version;
    const api::ResourceInfo* info;
    Object before, after;  // null: did not exist, or was deleted
  };

  explicit FakeStore(Clock& clock) : clock_(clock) {}

  Result<Object> Get(const api::ResourceInfo& info, const std::string& key) const;
  // Sorted by key; `ns` empty: all namespaces.
  std::vector<Object> List(const api::ResourceInfo& info, std::string_view ns) const;

  Result<Object> Create(const api::ResourceInfo& info, const Message& object);
  // `subresource`: "", "status", or one that replaces the whole object ("finalize", "ephemeralcontainers",
  // ...).
  Result<Object> Update(const api::ResourceInfo& info, std::string_view subresource, const Message& object);
  Result<Object> Delete(const api::ResourceInfo& info, const std::string& key,
                        const metav1::DeleteOptions& options);
  Result<> Bind(const std::string& pod_key, const corev1::Binding& binding);
  // Stores the object exactly as given, status included, for tests to set up.
  Object Put(const api::ResourceInfo& info, const Message& object);

  uint64_t version() const { return version_; }
  // The log position of the first change after `version`. kGone when the log no longer has it.
  Result<size_t> Position(uint64_t version) const;
  size_t log_start() const { return log_start_; }
  size_t log_end() const { return log_start_ + log_.size(); }
  const LogEntry& At(size_t position) const { return log_[position - log_start_]; }
  void Compact();  // forgets the log

 private:
  using Objects = std::map<std::string, Object>;
  const Objects* Find(const api::ResourceInfo& info) const;
  Objects& Of(const api::ResourceInfo& info);
  Object Commit(const api::ResourceInfo& info, Object before, std::unique_ptr<Message> after);
  Object Remove(const api::ResourceInfo& info, Object before);
  Object CommitOrRemove(const api::ResourceInfo& info, Object before, std::unique_ptr<Message> after);

  Clock& clock_;
  uint64_t version_ = 1;
  std::map<std::string, Objects> objects_;  // by group and resource
  std::vector<LogEntry> log_;
  size_t log_start_ = 0;
  uint64_t compacted_ = 1;
};

}  // namespace keelson::client
