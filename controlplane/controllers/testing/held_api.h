// Controllers' requests held to the rights of their accounts, for tests: those that the bootstrap policy
// gives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/client/transport.h"

namespace keelson::controllers {

// The ServiceAccount in kube-system that a controller acts as, by the name of its queue; "system:..." is a
// user, for what is done with the rights of the controller manager itself. "": no such queue.
std::string_view AccountOfQueue(std::string_view queue);

// May the account do that? As RBAC says with the policy that an API server starts with.
bool IsGranted(std::string_view account, const std::string& method, const std::string& target);

// Lets every request through, and tells of those that the account has no right to.
class HeldApi : public client::Transport {
 public:
  using Tell = std::function<void(const std::string& what)>;
  HeldApi(std::shared_ptr<client::Transport> to, Tell tell) : to_(std::move(to)), tell_(std::move(tell)) {}
  void ActAs(std::string_view account) { account_ = account; }  // before the first request

  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override;
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override;

 private:
  void Check(const client::ApiRequest& request) const;

  const std::shared_ptr<client::Transport> to_;
  const Tell tell_;
  std::string_view account_;
};

}  // namespace keelson::controllers
