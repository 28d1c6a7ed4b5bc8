// A duplex byte stream: what is left of a connection after an upgrade (101 Switching Protocols).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::http {

// Callbacks run on an I/O thread, never inside the call that asks for them, and must not block. One read and
// one write may be under way at a time. Destroying the stream closes it; callbacks under way then end with
// kCancelled.
class Stream {
 public:
  virtual ~Stream() = default;
  // Some bytes, at least one; an empty string at the end of the peer's data.
  virtual void AsyncRead(std::function<void(Result<std::string>)> done) = 0;
  virtual void AsyncWrite(std::string data, std::function<void(Result<>)> done) = 0;
  virtual void ShutdownWrite() = 0;  // the peer sees the end of our data; reading goes on
  virtual void Close() = 0;          // both directions, at once; idempotent
};

// Copies bytes both ways until both directions have ended or either fails, then closes both and calls
// `done` once. Owns the streams meanwhile; runs without a thread of its own.
void Splice(std::unique_ptr<Stream> a, std::unique_ptr<Stream> b, std::function<void()> done = {});

}  // namespace keelson::http
