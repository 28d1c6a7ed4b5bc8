// A duplex byte stream: a connection after an upgrade (101 Switching Protocols).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::http {

// Callbacks run on an I/O thread, never inside the call that takes them, and must not block. One read and
// one write may be pending at a time. Destroying the stream closes it; pending callbacks then end with
// kCancelled.
class Stream {
 public:
  virtual ~Stream() = default;
  // Reads at least one byte; an empty string at the end of the peer's data.
  virtual void AsyncRead(std::function<void(Result<std::string>)> done) = 0;
  virtual void AsyncWrite(std::string data, std::function<void(Result<>)> done) = 0;
  virtual void ShutdownWrite() = 0;  // ends our data; reading continues
  virtual void Close() = 0;          // both directions, at once; idempotent
};

// Copies bytes both ways until both directions have ended or either fails, then closes both streams and
// calls `done` once. Owns the streams; needs no thread of its own.
void Splice(std::unique_ptr<Stream> a, std::unique_ptr<Stream> b, std::function<void()> done = {});

}  // namespace keelson::http
