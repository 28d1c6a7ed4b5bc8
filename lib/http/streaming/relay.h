// Two streams with a translator between them. Internal to lib/http/streaming.
//
// Side 0 is the client, side 1 the server behind. A side is not read while too much is queued for the
// other, so buffers are bounded. Runs on the streams' I/O threads, under its own mutex; keeps itself alive
// until both streams are done.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/mutex.h"
#include "lib/http/stream.h"

namespace keelson::http {

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  virtual ~Relay() = default;
  void Start();

 protected:
  enum Side { kClient = 0, kServer = 1 };
  Relay(std::unique_ptr<Stream> client, std::unique_ptr<Stream> server);

  // Called with the mutex held; implementations may send and call End().
  virtual void OnStart() KEELSON_REQUIRES(mutex_) {}
  virtual void OnBytes(Side side, std::string_view bytes) KEELSON_REQUIRES(mutex_) = 0;
  virtual void OnEnd(Side side, const Error* failure) KEELSON_REQUIRES(mutex_) = 0;

  std::string& out(Side side) KEELSON_REQUIRES(mutex_) { return legs_[side].out; }  // append data to send
  void Hold(Side side, bool held) KEELSON_REQUIRES(mutex_) {
    legs_[side].held = held;
  }  // stops reading for now
  // Stops reading, writes what is queued, then closes both streams.
  void End() KEELSON_REQUIRES(mutex_) { ending_ = true; }

  Mutex mutex_;

 private:
  struct Leg {
    std::unique_ptr<Stream> stream;
    std::string out;
    bool reading = false, writing = false, ended = false, held = false;
  };
  void Move() KEELSON_REQUIRES(mutex_);
  void ReadDone(Side side, Result<std::string> bytes);
  void WriteDone(Side side, Result<> result);

  Leg legs_[2] KEELSON_GUARDED_BY(mutex_);
  bool ending_ KEELSON_GUARDED_BY(mutex_) = false, closed_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::http
