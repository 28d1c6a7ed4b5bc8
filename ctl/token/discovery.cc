#include "ctl/token/discovery.h"

#include "lib/base/pause.h"
#include "lib/base/text.h"
#include "lib/crypto/certificate_checks.h"
#include "lib/http/client/client.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::seconds kRetry{1};
constexpr char kBootstrapUser[] = "tls-bootstrap-token-user";

std::string DataOf(const corev1::ConfigMap& map, const std::string& key) {
  const auto found = map.data().find(key);
  return found == map.data().end() ? "" : found->second;
}

Result<client::RestClient> Connect(client::RestConfig config, std::chrono::seconds timeout) {
  config.user_agent = "nodectl/keelson";
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(config));
  return client::RestClient(std::move(transport), timeout);
}

// Reads cluster-info until it is signed by the token.
Result<corev1::ConfigMap> AwaitClusterInfo(const client::RestClient& api, const TokenParts& token,
                                           std::chrono::seconds patience, Clock& clock) {
  const SteadyTime end = clock.SteadyNow() + patience;
  for (;;) {
    auto map = api.Get<corev1::ConfigMap>("kube-public", "cluster-info");
    if (map && !DataOf(*map, "jws-kubeconfig-" + token.id).empty()) return map;
    if (clock.SteadyNow() >= end) {
      if (!map) return map.error().Wrap("failed to request the cluster-info ConfigMap");
      return Error(
          Code::kTimeout,
          "could not find a JWS signature in the cluster-info ConfigMap for token ID \"" + token.id +
              "\": the token is wrong or has expired; 'nodectl token create' on the control plane makes one");
    }
    Pause(clock, kRetry, {});
  }
}

Result<Kubeconfig> DiscoverByToken(const JoinConfiguration& config, std::ostream& out, Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(const TokenParts token, ParseToken(config.token));
  client::RestConfig at;
  at.server = "https://" + config.api_server_endpoint;
  at.insecure = true;
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient unverified, Connect(at, config.timeouts.api_call));
  out << "[discovery] Reading cluster-info from \"" << config.api_server_endpoint << "\"\n";
  KEELSON_ASSIGN_OR_RETURN(const corev1::ConfigMap first,
                           AwaitClusterInfo(unverified, token, config.timeouts.discovery, clock));
  KEELSON_ASSIGN_OR_RETURN(const std::string text, VerifiedKubeconfig(first, token));
  Result<Kubeconfig> found = ParseKubeconfig(text);
  if (!found) return found.error().Wrap("malformed kubeconfig in the cluster-info ConfigMap");
  KEELSON_RETURN_IF_ERROR(CheckDates(found->ca_pem, "CA of the cluster", clock.Now()));
  if (config.ca_hashes.empty()) return found;  // unsafeSkipCAVerification, which Complete() requires
  if (auto pinned = CheckPins(found->ca_pem, config.ca_hashes); !pinned) {
    return pinned.error().Wrap("cluster CA found in cluster-info ConfigMap is invalid");
  }
  // Who answers has to prove that it is the owner of the CA.
  at.insecure = false;
  at.ca_pem = found->ca_pem;
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient verified, Connect(at, config.timeouts.api_call));
  KEELSON_ASSIGN_OR_RETURN(const corev1::ConfigMap second,
                           AwaitClusterInfo(verified, token, config.timeouts.discovery, clock));
  if (DataOf(second, "kubeconfig") != text) {
    return Error(
        Code::kInvalid,
        "the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was different from the "
        "first");
  }
  return found;
}

// The text of a kubeconfig that the administrator has put somewhere.
Result<std::string> ReadDiscoveryFile(const std::string& where, const Host& host,
                                      std::chrono::seconds timeout) {
  if (!where.starts_with("https://")) return host.Read(where);
  const size_t path = where.find('/', sizeof "https://" - 1);
  http::ClientOptions options;
  options.base_url = where.substr(0, path);
  KEELSON_ASSIGN_OR_RETURN(const std::unique_ptr<http::Client> client,
                           http::Client::Create(std::move(options)));
  http::ClientRequest request;
  request.target = path == std::string::npos ? "/" : where.substr(path);
  KEELSON_ASSIGN_OR_RETURN(http::ClientResponse response, client->Do(request, timeout));
  if (response.status != 200) {
    return Error(Code::kUnavailable, where + ": HTTP status " + std::to_string(response.status));
  }
  return std::move(response.body);
}

Result<Kubeconfig> DiscoverByFile(const JoinConfiguration& config, const Host& host, std::ostream& out) {
  out << "[discovery] Reading the kubeconfig \"" << config.discovery_file << "\"\n";
  KEELSON_ASSIGN_OR_RETURN(const std::string text,
                           ReadDiscoveryFile(config.discovery_file, host, config.timeouts.api_call));
  KEELSON_ASSIGN_OR_RETURN(Kubeconfig found, ParseKubeconfig(text));
  if (found.ca_pem.empty()) {
    return Error(Code::kInvalid, config.discovery_file + ": the cluster has no certificate-authority-data");
  }
  // The cluster's own server and CA, as it tells them to everybody.
  Kubeconfig anonymous = found;
  anonymous.certificate_pem = anonymous.key_pem = anonymous.certificate_file = anonymous.token = "";
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ClientFor(anonymous, config.timeouts.api_call));
  const auto map = api.Get<corev1::ConfigMap>("kube-public", "cluster-info");
  if (!map) return found;  // the server need not have it; the file is what counts
  const Result<Kubeconfig> told = ParseKubeconfig(DataOf(*map, "kubeconfig"));
  if (told && !told->server.empty() && !told->ca_pem.empty()) {
    found.server = told->server;
    found.ca_pem = told->ca_pem;
  }
  return found;
}

}  // namespace

Result<std::string> VerifiedKubeconfig(const corev1::ConfigMap& cluster_info, const TokenParts& token) {
  std::string text = DataOf(cluster_info, "kubeconfig");
  if (text.empty()) {
    return Error(
        Code::kInvalid,
        "there is no kubeconfig key in the cluster-info ConfigMap. This API Server isn't set up for token "
        "bootstrapping, can't connect");
  }
  const std::string signature = DataOf(cluster_info, "jws-kubeconfig-" + token.id);
  if (signature.empty()) {
    return Error(Code::kInvalid,
                 "token id \"" + token.id +
                     "\" is invalid for this cluster or it has expired. Use \"nodectl token create\" "
                     "on the control-plane node to create a new valid token");
  }
  if (!HasSigned(token, text, signature)) {
    return Error(
        Code::kInvalid,
        "failed to verify JWS signature of received cluster info object, can't trust this API Server");
  }
  return text;
}

Result<std::string> PinOf(const std::string& ca_pem) {
  KEELSON_ASSIGN_OR_RETURN(const std::string hash, crypto::PublicKeySha256(ca_pem));
  return "sha256:" + hash;
}

Result<> CheckPins(const std::string& ca_pem, const std::vector<std::string>& pins) {
  KEELSON_ASSIGN_OR_RETURN(const std::string own, PinOf(ca_pem));
  bool found = false;
  for (const std::string& pin : pins) {
    const size_t colon = pin.find(':');
    if (colon == pin.npos) {
      return Error(Code::kInvalid,
                   "invalid hash, expected \"format:hex-value\". Known format(s) are: sha256");
    }
    if (Lower(pin.substr(0, colon)) != "sha256") {
      return Error(Code::kInvalid,
                   "unknown hash format \"" + pin.substr(0, colon) + "\". Known format(s) are: sha256");
    }
    const std::string hex = Lower(pin.substr(colon + 1));
    if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != hex.npos) {
      return Error(Code::kInvalid,
                   "expected a 32 byte SHA-256 hash, found " + std::to_string(hex.size() / 2) + " bytes");
    }
    found = found || "sha256:" + hex == own;
  }
  if (found) return {};
  return Error(Code::kInvalid, "none of the public keys \"" + own + "\" are pinned");
}

Result<client::RestClient> ClientFor(const Kubeconfig& config, std::chrono::seconds timeout) {
  client::RestConfig at;
  at.server = config.server;
  at.ca_pem = config.ca_pem;
  at.certificate_pem = config.certificate_pem;
  at.key_pem = config.key_pem;
  at.token = config.token;
  return Connect(std::move(at), timeout);
}

Result<Kubeconfig> DiscoverCluster(const JoinConfiguration& config, const Host& host, std::ostream& out,
                                   Clock& clock) {
  const bool by_file = !config.discovery_file.empty();
  KEELSON_ASSIGN_OR_RETURN(Kubeconfig found,
                           by_file ? DiscoverByFile(config, host, out) : DiscoverByToken(config, out, clock));
  if (config.tls_bootstrap_token.empty()) {
    if (found.token.empty() && found.certificate_pem.empty()) {
      return Error(Code::kInvalid,
                   "the discovery file has no credentials for TLS bootstrapping: give --tls-bootstrap-token");
    }
    return found;
  }
  found.user = kBootstrapUser;
  found.cluster = "kubernetes";
  found.certificate_pem = found.key_pem = found.certificate_file = "";
  found.token = config.tls_bootstrap_token;
  return found;
}

}  // namespace keelson::ctl
