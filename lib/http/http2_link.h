// The common part of both ends of an HTTP/2 connection: nghttp2 between a channel and streams. Internal to
// lib/http; runs on the channel's loop.
//
// Received bytes go through nghttp2 to the derived class's callbacks. Output of nghttp2 goes to the
// channel, as long as the channel is not behind. Bodies are sent from shared strings without a copy.
#pragma once

#include <nghttp2/nghttp2.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/http/channel.h"

namespace keelson::http {

// The unsent part of a stream's body.
struct OutBody {
  std::deque<std::shared_ptr<const std::string>> parts;
  size_t offset = 0;  // into the first part
  size_t size = 0;
  bool finished = false;
  std::function<void(size_t)> on_sent;  // may be empty

  void Push(std::shared_ptr<const std::string> part);
};

struct FreeSession {
  void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
};

class Http2Link : public Channel::Receiver {
 public:
  void OnData(std::string_view bytes) final;
  void OnEnd(const Error* failure) final;
  void OnDrained() final { Pump(); }

 protected:
  explicit Http2Link(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  // `role`: nghttp2_session_server_new2 or nghttp2_session_client_new2. `callbacks` has the callbacks of
  // the derived class; their user data is `this`.
  void Create(decltype(&nghttp2_session_server_new2) role, nghttp2_session_callbacks* callbacks,
              const nghttp2_option* options);
  // Sends nghttp2's pending output. Call it after every change made outside of nghttp2's callbacks.
  void Pump();
  void Resume(int32_t stream_id) { nghttp2_session_resume_data(session_.get(), stream_id); }
  // A data provider that sends the body that FindBody() returns for the stream.
  nghttp2_data_provider Provider();
  virtual OutBody* FindBody(int32_t stream_id) = 0;
  // The connection is no longer usable. Never called inside a callback of nghttp2.
  virtual void Ended(const Error* failure) = 0;
  // Everything has been sent, and nghttp2 neither reads nor writes any more, or the derived class asked for
  // the end.
  bool Exhausted() const;

  std::shared_ptr<Channel> channel_;
  std::unique_ptr<nghttp2_session, FreeSession> session_;
  bool ended_ = false;

 private:
  static ssize_t ReadBody(nghttp2_session*, int32_t stream_id, uint8_t*, size_t length, uint32_t* flags,
                          nghttp2_data_source* source, void*);
  static int SendBody(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t length,
                      nghttp2_data_source*, void* self);
  bool inside_ = false;  // inside an nghttp2 call that runs callbacks
};

// A header list for nghttp2, with names in lower case and without headers that HTTP/2 forbids. The pairs
// point into the list, so they are valid as long as it is.
class HeaderList {
 public:
  void Add(std::string_view name, std::string_view value);
  void AddAll(const class Headers& headers);
  const std::vector<nghttp2_nv>& get();

 private:
  std::deque<std::pair<std::string, std::string>> items_;
  std::vector<nghttp2_nv> pairs_;
};

}  // namespace keelson::http
