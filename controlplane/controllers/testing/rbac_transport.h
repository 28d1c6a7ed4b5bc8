// For tests: checks that controllers send only requests that the bootstrap RBAC policy allows their accounts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/client/transport.h"

namespace keelson::controllers {

// The ServiceAccount in kube-system for the name of a controller's queue; "system:..." is a user, for
// controllers that use the controller manager's own identity. "": unknown queue.
std::string_view AccountOfQueue(std::string_view queue);

// True when the bootstrap RBAC policy allows the account this request.
bool IsGranted(std::string_view account, const std::string& method, const std::string& target);

// Forwards all requests, and calls `tell` for each one that the account may not send.
class RbacTransport : public client::Transport {
 public:
  using Tell = std::function<void(const std::string& what)>;
  RbacTransport(std::shared_ptr<client::Transport> to, Tell tell)
      : to_(std::move(to)), tell_(std::move(tell)) {}
  void ActAs(std::string_view account) { account_ = account; }  // call before the first request

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
