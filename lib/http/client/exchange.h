// One client request and its response, between the caller's thread and the connection that carries it.
// Internal to lib/http/client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/base/mutex.h"
#include "lib/event/loop.h"
#include "lib/http/channel_stream.h"
#include "lib/http/client/client.h"

namespace keelson::http {

class Exchange;

// The connection that carries an exchange; its methods run on the loop.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual void Abort(Exchange& exchange) = 0;
  virtual void Resume(Exchange& exchange, size_t read) = 0;  // the reader has taken `read` bytes
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<event::Loop> l, ClientRequest r, bool s)
      : loop(std::move(l)), request(std::move(r)), streaming(s) {}
  // The response goes to `sink`; no thread waits for it.
  Exchange(std::shared_ptr<event::Loop> l, ClientRequest r, std::shared_ptr<ResponseSink> sink)
      : loop(std::move(l)), request(std::move(r)), streaming(true), sink_(std::move(sink)) {}

  const std::shared_ptr<event::Loop> loop;
  const ClientRequest request;
  const bool streaming;  // the body is read piece by piece: limit what is queued

  // ---- loop thread ----
  std::weak_ptr<Carrier> carrier;
  bool upgrade = false;
  int attempts = 0;
  void OnHead(int status, Headers headers);
  // True when the reader is behind: deliver no more until Resume().
  bool OnBody(std::string_view bytes);
  void OnUpgraded(std::shared_ptr<StreamCore> stream);
  void OnEnd();
  void OnFail(Error error);
  void FailAfter(std::chrono::milliseconds timeout);  // with kTimeout
  bool head_seen() const { return head_seen_; }
  bool over() const { return over_; }  // ended, failed or given up: the carrier stops

  // ---- caller's thread ----
  using Deadline = std::chrono::steady_clock::time_point;
  static Deadline DeadlineIn(std::chrono::milliseconds timeout);
  Result<> AwaitHead(Deadline deadline, std::stop_token stop);
  Result<> AwaitEnd(Deadline deadline, std::stop_token stop);
  Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle);
  void OnReadable(std::function<void()> readable);
  void GiveUp();  // the carrier drops it, unless it has ended
  void Resume();  // the sink has caught up
  // Valid after AwaitHead() / AwaitEnd().
  int status() const { return status_; }
  Headers& headers() { return headers_; }
  std::string& body() { return body_; }
  std::shared_ptr<StreamCore> TakeStream();

 private:
  bool TooLong(size_t more);
  Result<> Await(Deadline deadline, std::stop_token stop, const std::function<bool()>& ready);
  void End();  // nothing follows; loop thread
  void TellReader() KEELSON_EXCLUDES(mutex_);
  Mutex mutex_;
  CondVar changed_;
  bool head_seen_ = false, over_ = false;  // loop thread
  std::shared_ptr<ResponseSink> sink_;     // loop thread; null after the end
  std::unique_ptr<event::Timer> timer_;    // loop thread; null after the end
  bool head_ KEELSON_GUARDED_BY(mutex_) = false;
  bool ended_ KEELSON_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ KEELSON_GUARDED_BY(mutex_);
  int status_ = 0;
  Headers headers_;
  std::string body_;  // KEELSON_GUARDED_BY(mutex_) until the end
  bool behind_ KEELSON_GUARDED_BY(mutex_) = false;
  std::function<void()> readable_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<StreamCore> stream_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::http
