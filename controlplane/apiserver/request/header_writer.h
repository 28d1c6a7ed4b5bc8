// A response writer that sets headers of every reply, also of streams and upgrades. A backend behind this server may have
// set the same ones: the backend's values are replaced.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/http/server/server.h"

namespace keelson::apiserver {

class HeaderWriter : public http::ResponseWriter {
 public:
  HeaderWriter(std::shared_ptr<http::ResponseWriter> next, http::Headers added)
      : next_(std::move(next)), added_(std::move(added)) {}

  void Reply(int status, http::Headers headers, std::string body) override {
    next_->Reply(status, With(std::move(headers)), std::move(body));
  }
  void ReplyShared(int status, http::Headers headers,
                   std::vector<std::shared_ptr<const std::string>> body) override {
    next_->ReplyShared(status, With(std::move(headers)), std::move(body));
  }
  void Start(int status, http::Headers headers) override { next_->Start(status, With(std::move(headers))); }
  bool Write(std::shared_ptr<const std::string> data) override { return next_->Write(std::move(data)); }
  void Finish() override { next_->Finish(); }
  size_t queued_bytes() const override { return next_->queued_bytes(); }
  void OnClose(std::function<void()> callback) override { next_->OnClose(std::move(callback)); }
  bool closed() const override { return next_->closed(); }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers headers) override {
    return next_->Upgrade(With(std::move(headers)));
  }

 private:
  http::Headers With(http::Headers headers) const {
    for (const auto& [name, value] : added_) headers.Set(name, value);
    return headers;
  }

  const std::shared_ptr<http::ResponseWriter> next_;
  const http::Headers added_;
};

}  // namespace keelson::apiserver
