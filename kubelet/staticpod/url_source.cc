#include "kubelet/staticpod/parse.h"
#include "kubelet/staticpod/sources.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/http/client/client.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kTimeout(10);

Result<std::unique_ptr<http::Client>> Connect(const std::string& url, std::string& target) {
  size_t scheme = url.find("://");
  size_t slash = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  target = slash == std::string::npos ? "/" : url.substr(slash);
  http::ClientOptions options;
  options.base_url = url.substr(0, slash);
  return http::Client::Create(std::move(options));
}

Result<std::string> Fetch(http::Client& client, const std::string& target, const UrlSourceOptions& options,
                          std::stop_token stop) {
  http::ClientRequest request;
  request.target = target;
  for (const auto& [name, values] : options.headers) {
    for (const std::string& value : values) request.headers.Add(name, value);
  }
  KEELSON_ASSIGN_OR_RETURN(http::ClientResponse response, client.Do(request, kTimeout, stop));
  if (response.status != 200) {
    return Error(Code::kUnavailable, options.url + ": " + std::to_string(response.status));
  }
  return std::move(response.body);
}

}  // namespace

void RunUrlSource(const UrlSourceOptions& options, const StaticPodsFunction& tell, Clock& clock,
                  std::stop_token stop) {
  constexpr int kTold = 3;  // failures that are logged until a fetch succeeds
  std::unique_ptr<http::Client> client;
  std::string target, last;
  int failures = 0;
  auto look = [&]() -> Result<> {
    if (!client) {
      KEELSON_ASSIGN_OR_RETURN(client, Connect(options.url, target));
    }
    KEELSON_ASSIGN_OR_RETURN(std::string body, Fetch(*client, target, options, stop));
    if (body.empty()) {
      tell({});
      last.clear();
      return Error(Code::kInvalid, "zero-length data received from " + options.url);
    }
    if (body == last) return {};
    KEELSON_ASSIGN_OR_RETURN(
        std::vector<corev1::Pod> pods,
        ParseStaticPods(body, {"http", options.url, options.node_name, &options.running}));
    last = std::move(body);
    tell(std::move(pods));
    return {};
  };
  while (!stop.stop_requested()) {
    if (auto looked = look()) {
      if (failures > 0) log::Info("Read pods from URL again", {{"url", options.url}});
      failures = 0;
    } else if (!stop.stop_requested() && ++failures <= kTold) {
      log::Warn("Failed to read pods from URL", {{"err", looked.error()}});
    }
    Pause(clock, options.period, stop);
  }
}

}  // namespace keelson::kubelet
