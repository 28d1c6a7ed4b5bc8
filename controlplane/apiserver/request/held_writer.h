// A response writer that keeps an object alive until the response, or the stream it was upgraded to, ends.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/http/server/server.h"

namespace keelson::apiserver {

class HeldWriter : public http::ResponseWriter {
 public:
  HeldWriter(std::shared_ptr<http::ResponseWriter> inner, std::shared_ptr<void> held)
      : inner_(std::move(inner)), held_(std::move(held)) {}

  void Reply(int status, http::Headers headers, std::string body) override {
    inner_->Reply(status, std::move(headers), std::move(body));
  }
  void ReplyShared(int status, http::Headers headers,
                   std::vector<std::shared_ptr<const std::string>> body) override {
    inner_->ReplyShared(status, std::move(headers), std::move(body));
  }
  void Start(int status, http::Headers headers) override { inner_->Start(status, std::move(headers)); }
  bool Write(std::shared_ptr<const std::string> data) override { return inner_->Write(std::move(data)); }
  void Finish() override { inner_->Finish(); }
  size_t queued_bytes() const override { return inner_->queued_bytes(); }
  void OnClose(std::function<void()> callback) override { inner_->OnClose(std::move(callback)); }
  bool closed() const override { return inner_->closed(); }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers headers) override {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Stream> stream, inner_->Upgrade(std::move(headers)));
    return std::unique_ptr<http::Stream>(std::make_unique<HeldStream>(std::move(stream), held_));
  }

 private:
  class HeldStream : public http::Stream {
   public:
    HeldStream(std::unique_ptr<http::Stream> inner, std::shared_ptr<void> held)
        : held_(std::move(held)), inner_(std::move(inner)) {}
    void AsyncRead(std::function<void(Result<std::string>)> done) override {
      inner_->AsyncRead(std::move(done));
    }
    void AsyncWrite(std::string data, std::function<void(Result<>)> done) override {
      inner_->AsyncWrite(std::move(data), std::move(done));
    }
    void ShutdownWrite() override { inner_->ShutdownWrite(); }
    void Close() override { inner_->Close(); }

   private:
    const std::shared_ptr<void> held_;  // destroyed after the stream
    const std::unique_ptr<http::Stream> inner_;
  };

  const std::shared_ptr<http::ResponseWriter> inner_;
  const std::shared_ptr<void> held_;
};

}  // namespace keelson::apiserver
