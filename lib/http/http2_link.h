// What both ends of an HTTP/2 connection have in common: nghttp2 between a channel and streams. Internal to
// lib/http; on the channel's loop.
//
// Received bytes go through nghttp2 to the derived class's callbacks; what nghttp2 has to say goes to the
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

// What a stream still has to send.
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

  // `role`: nghttp2_session_server_new2 or nghttp2_session_client_new2. Callbacks of the derived class are
  // added to `callbacks`, with this as user data.
  void Create(decltype(&nghttp2_session_server_new2) role, nghttp2_session_callbacks* callbacks,
              const nghttp2_option* options);
  // Sends what nghttp2 has; to be called after every change from outside its callbacks.
  void Pump();
  void Resume(int32_t stream_id) { nghttp2_session_resume_data(session_.get(), stream_id); }
  // A provider that sends the body of the stream, which FindBody() finds.
  nghttp2_data_provider Provider();
  virtual OutBody* FindBody(int32_t stream_id) = 0;
  // The connection is of no more use. Not inside a callback of nghttp2.
  virtual void Ended(const Error* failure) = 0;
  // All that was sent is out and nothing runs any more in nghttp2's eyes, or the derived class asked for it.
  bool Exhausted() const;

  std::shared_ptr<Channel> channel_;
  std::unique_ptr<nghttp2_session, FreeSession> session_;
  bool ended_ = false;

 private:
  static ssize_t ReadBody(nghttp2_session*, int32_t stream_id, uint8_t*, size_t length, uint32_t* flags,
                          nghttp2_data_source* source, void*);
  static int SendBody(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t length,
                      nghttp2_data_source*, void* self);
  bool inside_ = false;  // of an nghttp2 call that runs callbacks
};

// A header list for nghttp2, with names in lower case and without what HTTP/2 forbids. The strings of the
// pairs stay valid as long as the list.
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
