// An API server's JSON, as an operator uses it: objects are trees. Counts writes, so that a test can end the process at
// each of them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <boost/json.hpp>

#include "lib/base/error.h"
#include "lib/client/transport.h"

namespace keelson::test_operator {

// Writes to anything outside of the process pass through here.
class Writes {
 public:
  // Kills the process at write `die_at / 2`, counted from 1: before it if `die_at` is even, after it if it is odd.
  // Below 2: never.
  explicit Writes(int die_at) : die_at_(die_at) {}
  template <typename Function>
  auto Do(Function write) {
    const int number = 2 * ++count_;
    Step(number);
    auto result = write();
    Step(number + 1);
    return result;
  }

  int count() const { return count_; }

 private:
  void Step(int step) const;
  const int die_at_;
  std::atomic<int> count_{0};
};

class JsonApi {  // thread safe
 public:
  JsonApi(std::shared_ptr<client::Transport> transport, Writes& writes)
      : transport_(std::move(transport)), writes_(writes) {}

  Result<boost::json::value> Get(const std::string& path) const;
  Result<boost::json::value> Create(const std::string& collection, const boost::json::value& object) const;
  Result<boost::json::value> Replace(const std::string& path, const boost::json::value& object) const;
  Result<> Delete(const std::string& path) const;
  // Creates the object, or replaces the one that is there.
  Result<> Put(const std::string& collection, const std::string& name, boost::json::object object) const;
  // Calls `each` with every event of a watch, until it ends.
  Result<> Watch(const std::string& path, std::stop_token stop,
                 const std::function<void(const boost::json::value& event)>& each) const;

 private:
  Result<boost::json::value> Send(const std::string& method, const std::string& path,
                                  const boost::json::value* body) const;
  std::shared_ptr<client::Transport> transport_;
  Writes& writes_;
};

}  // namespace keelson::test_operator
