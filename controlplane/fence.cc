#include "controlplane/fence.h"

namespace keelson::controlplane {
namespace {

class FencedTransport : public client::Transport {
 public:
  FencedTransport(std::shared_ptr<client::Transport> inner, std::shared_ptr<const Fence> fence)
      : inner_(std::move(inner)), fence_(std::move(fence)) {}

  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    if (!fence_->open()) return Lost();
    return inner_->Do(request, timeout, std::move(stop));
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    if (!fence_->open()) return Lost();
    return inner_->Open(request, std::move(stop));
  }

 private:
  static Error Lost() { return {Code::kUnavailable, "leader election lost"}; }

  const std::shared_ptr<client::Transport> inner_;
  const std::shared_ptr<const Fence> fence_;
};

}  // namespace

std::shared_ptr<client::Transport> Fenced(std::shared_ptr<client::Transport> inner,
                                          std::shared_ptr<const Fence> fence) {
  return std::make_shared<FencedTransport>(std::move(inner), std::move(fence));
}

}  // namespace keelson::controlplane
