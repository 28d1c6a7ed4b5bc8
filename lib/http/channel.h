// One connection, plain or TLS, on a loop: bytes in to a receiver, slices of shared strings out. Internal to
// lib/http. All methods run on the loop's thread unless they say otherwise.
//
// TLS goes straight to the socket, so an idle connection holds no buffers.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/crypto/tls_stream.h"
#include "lib/event/loop.h"

namespace keelson::http {

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void OnData(std::string_view bytes) = 0;
    // No more data: null at a clean end (sending still works, and may fail later), else the failure of the
    // connection, after which nothing is called.
    virtual void OnEnd(const Error* failure) = 0;
    virtual void OnDrained() = 0;  // all that was sent is with the kernel
  };

  // `fd` is non-blocking, and is what `tls` reads and writes. `tls` is null for plain bytes. Any thread.
  Channel(std::shared_ptr<event::Loop> loop, UniqueFd fd, std::unique_ptr<crypto::TlsStream> tls);
  ~Channel();

  event::Loop& loop() { return *loop_; }
  const std::shared_ptr<event::Loop>& loop_ptr() { return loop_; }
  const crypto::TlsStream* tls() const { return tls_.get(); }  // null for plain bytes

  // TLS handshake (at once for plain bytes); kTimeout after `timeout`.
  void Handshake(std::chrono::milliseconds timeout, std::function<void(Result<>)> done);
  // Begins reading, or hands reading over to another receiver.
  void SetReceiver(std::shared_ptr<Receiver> receiver);
  void PauseReading() { paused_ = true; }
  void ResumeReading();

  void Send(std::string bytes);
  void Send(std::shared_ptr<const std::string> bytes) { Send(bytes, 0, bytes->size()); }
  void Send(std::shared_ptr<const std::string> owner, size_t offset, size_t size);
  void Flush();  // sends what is queued; Send alone only queues
  size_t queued() const { return queued_.load(std::memory_order_relaxed); }  // thread safe

  void ShutdownWrite();    // once the queue is empty
  void CloseGracefully();  // once the queue is empty; lets the peer read it all before the reset
  void Close();            // at once; no callback follows
  bool closed() const { return closed_; }

 private:
  struct Slice {
    std::shared_ptr<const std::string> owner;
    size_t offset, size;
  };
  using Io = crypto::TlsStream::Io;

  void StepHandshake();
  void EndHandshake(Result<> result);
  void Readable();
  Io ReadSome(char* buffer, size_t size, size_t& count);
  Io WriteSome();
  Io WritePlain();
  Io WriteTls();
  Error Broken() const;  // after kFailed
  void Consume(size_t count);
  void ReadEnded(const Error* failure);
  void Failed(const Error& error);
  void AwaitReadable();
  void AwaitWritable();
  void QueueEmpty();
  void FinishShutdown();

  std::shared_ptr<event::Loop> loop_;
  UniqueFd fd_;
  std::unique_ptr<crypto::TlsStream> tls_;
  std::unique_ptr<event::FdWatch> watch_;
  std::unique_ptr<event::Timer> timer_;  // handshake, then linger
  std::shared_ptr<Receiver> receiver_;
  std::function<void(Result<>)> handshake_done_;
  std::deque<Slice> out_;
  std::string record_;  // small slices joined to one TLS record, until it is written
  size_t record_offset_ = 0;
  std::atomic<size_t> queued_{0};
  bool reading_ = false;  // a wait or a posted read is under way
  bool paused_ = false;
  bool read_ended_ = false;
  bool writing_ = false;  // waiting for room
  bool read_wants_write_ = false;
  bool flushing_ = false;
  bool write_failed_ = false;
  bool shutdown_wanted_ = false, shutdown_done_ = false;
  bool lingering_ = false;
  size_t discarded_ = 0;  // since then
  bool closed_ = false;
  int last_errno_ = 0;  // of a plain socket
};

}  // namespace keelson::http
