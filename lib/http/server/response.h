// State shared by a handler's ResponseWriter and the session that sends for it. Internal to
// lib/http/server.
//
//   worker threads                     I/O thread
//   Writer --Start/Write/Finish--> Response --Take()--> session
//                                           <--Complete()/connection gone--
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/http/server/server.h"

namespace keelson::http {

class Response : public std::enable_shared_from_this<Response> {  // thread safe
 public:
  // WakeResponse() makes the session call Take() on its thread: soon for the begin of a response and for a whole one, in
  // its turn for what follows of a response that goes on. UpgradeResponse() takes the connection over. Both from any
  // thread.
  struct Session {
    virtual ~Session() = default;
    virtual void WakeResponse(std::shared_ptr<Response> response, bool in_turn) = 0;
    virtual Result<std::unique_ptr<Stream>> UpgradeResponse(const std::shared_ptr<Response>& response,
                                                            Headers headers) = 0;
    virtual size_t BytesBehind(const Response& response) const = 0;  // taken, but not sent yet
  };
  // The next part of the response to send.
  struct Batch {
    bool head = false;  // `status` and `headers` are valid and come first
    int status = 0;
    Headers headers;
    std::optional<size_t> content_length;  // of a complete reply
    std::vector<std::shared_ptr<const std::string>> data;
    bool finished = false;
    bool abandoned = false;  // the writer is gone and did not finish
  };

  explicit Response(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  // Session side.
  Batch Take();
  void Complete();  // all sent, or the client has gone: runs the callbacks, once
  bool closed() const;
  int64_t stream_id = 0;          // HTTP/2: the session's own
  std::atomic<size_t> behind{0};  // HTTP/2: bytes taken by the session and not sent yet

  // Writer side: see ResponseWriter.
  bool Head(int status, Headers headers, std::optional<size_t> content_length,
            std::vector<std::shared_ptr<const std::string>> body);
  bool Write(std::shared_ptr<const std::string> data);
  void Finish();
  void Abandon();
  void OnClose(std::function<void()> callback);
  size_t queued_bytes() const;
  Result<std::unique_ptr<Stream>> Upgrade(Headers headers);

 private:
  void Wake(bool was_awake, bool in_turn);
  const std::shared_ptr<Session> session_;
  mutable Mutex mutex_;
  bool started_ KEELSON_GUARDED_BY(mutex_) = false;
  bool head_taken_ KEELSON_GUARDED_BY(mutex_) = false;
  bool finished_ KEELSON_GUARDED_BY(mutex_) = false;
  bool abandoned_ KEELSON_GUARDED_BY(mutex_) = false;
  bool closed_ KEELSON_GUARDED_BY(mutex_) = false;
  bool awake_ KEELSON_GUARDED_BY(mutex_) = false;
  int status_ KEELSON_GUARDED_BY(mutex_) = 0;
  Headers headers_ KEELSON_GUARDED_BY(mutex_);
  std::optional<size_t> content_length_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const std::string>> data_ KEELSON_GUARDED_BY(mutex_);
  size_t pending_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void()>> callbacks_ KEELSON_GUARDED_BY(mutex_);
};

std::shared_ptr<ResponseWriter> MakeWriter(std::shared_ptr<Response> response);

std::string_view StatusText(int status);
const std::string& HttpDate();  // now, in the form of the Date header; one copy per thread

}  // namespace keelson::http
