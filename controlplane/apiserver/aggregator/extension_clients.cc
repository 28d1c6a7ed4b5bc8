#include "controlplane/apiserver/aggregator/extension_clients.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kMaxAddresses = 256;
constexpr std::chrono::seconds kConnectTimeout{10};
constexpr std::string_view kUser = "X-Remote-User", kUid = "X-Remote-Uid", kGroup = "X-Remote-Group",
                           kExtra = "X-Remote-Extra-";

bool StartsWith(std::string_view name, std::string_view prefix) {
  return EqualsIgnoreCase(name.substr(0, prefix.size()), prefix);
}

// A key of `extra` as part of a header's name: what is no character of a token (RFC 9110, 5.6.2) in percent encoding.
std::string HeaderKey(std::string_view key) {
  constexpr std::string_view kMarks = "!#$&'*+-.^_`|~";
  std::string out;
  for (const char c : key) {
    if (std::isalnum(static_cast<unsigned char>(c)) || kMarks.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

// Line breaks would make further headers.
bool FitsHeader(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

}  // namespace

Result<ExtensionClients::Target> ExtensionClients::Make(const ApiServiceEntry& service, bool verify,
                                                        bool keep) {
  const std::string place =
      fmt::format("{}/{}:{}", service.service_ns, service.service_name, service.service_port);
  std::string last;
  ProxyCertificate certificate;
  {
    MutexLock lock(mutex_);
    certificate = certificate_;
    if (auto found = last_address_.find(place); keep && found != last_address_.end()) last = found->second;
  }
  KEELSON_ASSIGN_OR_RETURN(
      const std::string address,
      services_.Resolve(service.service_ns, service.service_name, service.service_port, last));
  const std::string trust = verify ? service.ServerName() + "\n" + service.ca_pem : "";
  {
    MutexLock lock(mutex_);
    if (keep) {
      if (last_address_.size() >= kMaxAddresses) last_address_.clear();
      last_address_[place] = address;
    }
    if (auto found = clients_.find(address); found != clients_.end()) {
      auto one = found->second.find(trust);
      if (one != found->second.end()) return Target{one->second, address};
    }
  }
  http::ClientOptions options;
  options.base_url = "https://" + address;
  options.connect_timeout = kConnectTimeout;
  options.tls.certificate_pem = certificate.certificate_pem;
  options.tls.key_pem = certificate.key_pem;
  options.tls.server_name = service.ServerName();
  if (verify) {
    options.tls.ca_pem = service.ca_pem;
  } else {
    options.tls.insecure_skip_verify = true;
  }
  Result<std::unique_ptr<http::Client>> made = http::Client::Create(std::move(options));
  if (!made) return Error(Code::kInternal, made.error().message());
  std::shared_ptr<http::Client> client = std::move(*made);
  MutexLock lock(mutex_);
  if (clients_.size() >= kMaxAddresses) clients_.clear();
  return Target{clients_[address].emplace(trust, std::move(client)).first->second, address};
}

Result<ExtensionClients::Target> ExtensionClients::For(const ApiServiceEntry& service) {
  return Make(service, !service.insecure, true);
}

Result<ExtensionClients::Target> ExtensionClients::ForProbe(const ApiServiceEntry& service) {
  return Make(service, false, false);
}

void ExtensionClients::Forget(const std::string& address) {
  std::map<std::string, std::shared_ptr<http::Client>> old;
  MutexLock lock(mutex_);
  if (auto found = clients_.find(address); found != clients_.end()) {
    old.swap(found->second);
    clients_.erase(found);
  }
}

void ExtensionClients::SetCertificate(ProxyCertificate certificate) {
  decltype(clients_) old;
  MutexLock lock(mutex_);
  certificate_ = std::move(certificate);
  old.swap(clients_);
}

bool IsIdentityHeader(std::string_view name) {
  return EqualsIgnoreCase(name, "Authorization") || StartsWith(name, "Impersonate-") ||
         StartsWith(name, "X-Remote-");
}

Result<http::Headers> IdentityHeaders(const User& user) {
  http::Headers out;
  out.Add(std::string(kUser), user.name);
  if (!user.uid.empty()) out.Add(std::string(kUid), user.uid);
  for (const std::string& group : user.groups) out.Add(std::string(kGroup), group);
  for (const auto& [key, values] : user.extra) {
    for (const std::string& value : values) out.Add(std::string(kExtra) + HeaderKey(key), value);
  }
  for (const auto& header : out) {
    if (!FitsHeader(header.second)) {
      return Error(Code::kInvalid, fmt::format("invalid header field value for \"{}\"", header.first));
    }
  }
  return out;
}

const User& AggregatorUser() {
  static const User user = {"system:kube-aggregator", "", {"system:masters"}, {}};
  return user;
}

}  // namespace keelson::apiserver
