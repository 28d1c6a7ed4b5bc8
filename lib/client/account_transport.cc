#include "lib/client/account_transport.h"

#include "lib/api/meta.h"
#include "lib/base/mutex.h"

namespace keelson::client {
namespace {

constexpr std::chrono::seconds kLife{3600};

class AccountTransport final : public Transport {
 public:
  AccountTransport(RestConfig config, RestClient asker, std::string ns, std::string account, Clock& clock)
      : config_(std::move(config)),
        asker_(std::move(asker)),
        ns_(std::move(ns)),
        account_(std::move(account)),
        clock_(clock) {
    config_.certificate_pem = config_.key_pem = config_.certificate_file = config_.key_file = "";
    config_.token_file = "";
  }

  Result<ApiResponse> Do(const ApiRequest& request, std::chrono::milliseconds timeout,
                         std::stop_token stop) override {
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport, Current(stop));
    Result<ApiResponse> response = transport->Do(request, timeout, stop);
    if (!response || response->status != 401) return response;
    // The account was recreated, or the server's keys have changed. Retry only once: after that the server
    // is at fault.
    Drop(transport);
    KEELSON_ASSIGN_OR_RETURN(transport, Current(stop));
    return transport->Do(request, timeout, stop);
  }

  Result<std::unique_ptr<ApiStream>> Open(const ApiRequest& request, std::stop_token stop) override {
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport, Current(stop));
    Result<std::unique_ptr<ApiStream>> stream = transport->Open(request, stop);
    if (!stream && stream.error().Is(Code::kUnauthenticated)) Drop(transport);
    return stream;
  }

 private:
  void Drop(const std::shared_ptr<Transport>& refused) {
    MutexLock lock(mutex_);
    if (current_ == refused) current_ = nullptr;
  }

  Result<std::shared_ptr<Transport>> Current(std::stop_token stop) {
    MutexLock lock(mutex_);
    const SteadyTime now = clock_.SteadyNow();
    if (current_ && now < renew_) return current_;
    Result<std::shared_ptr<Transport>> fresh = Make(stop);
    // The old token may still be valid.
    if (!fresh && current_) return current_;
    if (!fresh) return fresh.error().Wrap("token of " + ns_ + "/" + account_);
    current_ = *fresh;
    renew_ = now + kLife * 4 / 5;
    return current_;
  }

  Result<std::shared_ptr<Transport>> Make(std::stop_token stop) {
    const RestClient api = asker_.With(stop);
    const api::ResourceInfo& accounts = api::ResourceOf<corev1::ServiceAccount>();
    authenticationv1::TokenRequest request, answer;
    request.mutable_spec()->set_expiration_seconds(kLife.count());
    Result<> got = api.CreateSub(accounts, ns_, account_, "token", request, &answer);
    if (!got && got.error().Is(Code::kNotFound)) {
      corev1::ServiceAccount account;
      account.mutable_metadata()->set_namespace_(ns_);
      account.mutable_metadata()->set_name(account_);
      Result<corev1::ServiceAccount> made = api.Create(account);
      if (!made && !made.error().Is(Code::kAlreadyExists)) return made.error();
      got = api.CreateSub(accounts, ns_, account_, "token", request, &answer);
    }
    if (!got) return got.error();
    RestConfig config = config_;
    config.token = answer.status().token();
    return NewHttpTransport(config);
  }

  RestConfig config_;
  const RestClient asker_;
  const std::string ns_, account_;
  Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<Transport> current_ KEELSON_GUARDED_BY(mutex_);
  SteadyTime renew_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Transport> NewAccountTransport(RestConfig config, RestClient asker, std::string ns,
                                               std::string account, Clock& clock) {
  return std::make_shared<AccountTransport>(std::move(config), std::move(asker), std::move(ns),
                                            std::move(account), clock);
}

}  // namespace keelson::client
