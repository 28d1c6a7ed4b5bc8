// HTTP/1.1 messages out of bytes, both roles, on Beast's parser. Internal to lib/http.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::http {

struct MessageHead {
  std::string method, target;  // requests
  int status = 0;              // responses
  int version = 11;
  Headers headers;
  bool keep_alive = true;
  bool upgrade = false;
  bool chunked = false;
  std::optional<uint64_t> content_length;
};

// Feed() takes bytes until one message is complete; then Reset() for the next. Not thread safe.
class Http1Parser {
 public:
  enum class Role { kRequest, kResponse };
  struct Limits {
    uint32_t head = 256 << 10;
    uint64_t body = UINT64_MAX;
  };
  // `on_body` gets the body piece by piece; the pieces are only valid during the call.
  Http1Parser(Role role, Limits limits, std::function<void(std::string_view)> on_body);
  ~Http1Parser();

  // A response to HEAD, or to a request that upgrades: no body whatever the head says. Before the head.
  void SkipBody();
  // Bytes consumed (of a response nothing before its head is all there); the rest is offered again with more
  // behind it. Errors: kTooLarge (body), kBadRequest; HeadTooLarge() tells an over-long head from a malformed
  // one.
  Result<size_t> Feed(std::string_view bytes);
  // The peer has closed: completes a response that ends so, else an error.
  Result<> End();

  bool head_done() const;
  bool done() const;
  bool started() const;  // any byte of this message has been taken
  bool HeadTooLarge() const;
  MessageHead& head();
  void Reset();

 private:
  struct Base;
  template <bool is_request>
  struct Impl;
  std::unique_ptr<Base> Make() const;
  Result<size_t> FeedResponseHead(std::string_view bytes);
  Role role_;
  Limits limits_;
  std::function<void(std::string_view)> on_body_;
  std::unique_ptr<Base> impl_;
};

}  // namespace keelson::http
