// A Stream over what is left of a Channel. Internal to lib/http.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/http/channel.h"
#include "lib/http/stream.h"

namespace keelson::http {

// Lives on the channel's loop; all methods run there.
class StreamCore final : public Channel::Receiver, public std::enable_shared_from_this<StreamCore> {
 public:
  explicit StreamCore(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  // Takes the channel over. `early` is what came behind the upgrade.
  void Begin(std::string early, std::function<void()> on_closed);
  void Read(std::function<void(Result<std::string>)> done);
  void Write(std::string data, std::function<void(Result<>)> done);
  void ShutdownWrite();
  void Close(bool at_once);
  void Fail(const Error& error);
  Channel& channel() { return *channel_; }

  void OnData(std::string_view bytes) override;
  void OnEnd(const Error* failure) override;
  void OnDrained() override;

 private:
  std::shared_ptr<Channel> channel_;
  std::string buffer_;
  std::unique_ptr<Error> failure_;
  bool ended_ = false, closed_ = false, paused_ = false;
  std::function<void(Result<std::string>)> read_done_;
  std::function<void(Result<>)> write_done_;
  std::function<void()> on_closed_;
};

std::unique_ptr<Stream> MakeStream(std::shared_ptr<StreamCore> core);

}  // namespace keelson::http
