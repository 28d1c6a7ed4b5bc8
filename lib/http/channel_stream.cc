#include "lib/http/channel_stream.h"

#include <utility>

namespace keelson::http {
namespace {

constexpr size_t kReadAhead = 64 << 10;

class ChannelStream final : public Stream {
 public:
  explicit ChannelStream(std::shared_ptr<StreamCore> core)
      : core_(std::move(core)), loop_(core_->channel().loop_ptr()) {}
  ~ChannelStream() override { Close(); }

  void AsyncRead(std::function<void(Result<std::string>)> done) override {
    loop_->Post([core = core_, done = std::move(done)]() mutable { core->Read(std::move(done)); });
  }
  void AsyncWrite(std::string data, std::function<void(Result<>)> done) override {
    loop_->Post([core = core_, data = std::move(data), done = std::move(done)]() mutable {
      core->Write(std::move(data), std::move(done));
    });
  }
  void ShutdownWrite() override {
    loop_->Post([core = core_] { core->ShutdownWrite(); });
  }
  void Close() override {
    loop_->Post([core = core_] { core->Close(false); });
  }

 private:
  std::shared_ptr<StreamCore> core_;
  std::shared_ptr<event::Loop> loop_;
};

}  // namespace

std::unique_ptr<Stream> MakeStream(std::shared_ptr<StreamCore> core) {
  return std::make_unique<ChannelStream>(std::move(core));
}

void StreamCore::Begin(std::string early, std::function<void()> on_closed) {
  on_closed_ = std::move(on_closed);
  buffer_ = std::move(early) + buffer_;
  channel_->SetReceiver(shared_from_this());
}

void StreamCore::Read(std::function<void(Result<std::string>)> done) {
  if (closed_) return done(Error(Code::kCancelled, "stream: closed"));
  if (!buffer_.empty()) {
    std::string data = std::exchange(buffer_, {});
    if (std::exchange(paused_, false)) channel_->ResumeReading();
    return done(std::move(data));
  }
  if (failure_) return done(*failure_);
  if (ended_) return done(std::string());
  read_done_ = std::move(done);
}

void StreamCore::Write(std::string data, std::function<void(Result<>)> done) {
  if (closed_) return done(Error(Code::kCancelled, "stream: closed"));
  if (failure_) return done(*failure_);
  if (data.empty()) return done({});
  write_done_ = std::move(done);
  channel_->Send(std::move(data));
  channel_->Flush();
}

void StreamCore::ShutdownWrite() {
  if (!closed_ && !failure_) channel_->ShutdownWrite();
}

void StreamCore::OnData(std::string_view bytes) {
  if (auto done = std::exchange(read_done_, nullptr)) return done(std::string(bytes));
  buffer_ += bytes;
  if (buffer_.size() >= kReadAhead) {
    paused_ = true;
    channel_->PauseReading();
  }
}

void StreamCore::OnEnd(const Error* failure) {
  ended_ = true;
  if (failure) return Fail(*failure);
  if (auto done = std::exchange(read_done_, nullptr)) done(std::string());
}

void StreamCore::OnDrained() {
  if (auto done = std::exchange(write_done_, nullptr)) done({});
}

void StreamCore::Fail(const Error& error) {
  if (!failure_) failure_ = std::make_unique<Error>(error);
  if (auto done = std::exchange(read_done_, nullptr)) done(error);
  if (auto done = std::exchange(write_done_, nullptr)) done(error);
}

void StreamCore::Close(bool at_once) {
  if (std::exchange(closed_, true)) return;
  if (at_once || failure_ || channel_->queued() > 0) {
    channel_->Close();
  } else {
    channel_->CloseGracefully();
  }
  Error cancelled(Code::kCancelled, "stream: closed");
  if (auto done = std::exchange(read_done_, nullptr)) done(cancelled);
  if (auto done = std::exchange(write_done_, nullptr)) done(cancelled);
  if (auto done = std::exchange(on_closed_, nullptr)) done();
}

}  // namespace keelson::http
