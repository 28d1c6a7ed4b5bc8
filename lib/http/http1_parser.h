// Parser for HTTP/1.1 messages, both roles, based on Beast's. Internal to lib/http.
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

// Feed() takes bytes until one message is complete; Reset() prepares for the next. Not thread safe.
class Http1Parser {
 public:
  enum class Role { kRequest, kResponse };
  struct Limits {
    uint32_t head = 256 << 10;
    uint64_t body = UINT64_MAX;
  };
  // `on_body` gets the body piece by piece; each piece is valid only during the call.
  Http1Parser(Role role, Limits limits, std::function<void(std::string_view)> on_body);
  ~Http1Parser();

  // The message has no body, whatever its head says: a response to HEAD, or to an upgrade request. Call
  // before the head is parsed.
  void SkipBody();
  // Decides about the limit of the body when the head is complete; true: there is none. Before the head is parsed.
  void LiftBodyLimit(std::function<bool(const MessageHead&)> lifts) { lifts_ = std::move(lifts); }
  // Returns the number of bytes consumed; 0 for a response whose head is incomplete. The caller offers the
  // rest again with more bytes behind it. kTooLarge: the body exceeds its limit. kBadRequest: malformed, or
  // the head exceeds its limit (HeadTooLarge()).
  Result<size_t> Feed(std::string_view bytes);
  // The peer has closed. Completes a response that ends this way; otherwise an error.
  Result<> End();

  bool head_done() const;
  bool done() const;
  bool started() const;  // at least one byte of this message has been consumed
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
  std::function<bool(const MessageHead&)> lifts_;  // may be empty
  std::unique_ptr<Base> impl_;
};

}  // namespace keelson::http
