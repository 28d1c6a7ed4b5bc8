#include <sys/stat.h>

#include <optional>
#include <utility>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/base/text.h"
#include "lib/client/transport.h"
#include "lib/http/client/client.h"
#include "lib/metrics/metrics.h"

namespace keelson::client {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kLookEvery{5};     // how often to check the files' times
constexpr seconds kHeadTimeout{60};  // for the head of a watch's response

// Detects that a file has been replaced.
struct FileMark {
  std::string path;
  timespec changed{};
  ino_t inode = 0;

  bool Update() {  // true when it differs from the previous call
    struct stat now {};
    if (path.empty() || stat(path.c_str(), &now) != 0) return false;
    bool same =
        now.st_ino == inode && now.st_mtim.tv_sec == changed.tv_sec && now.st_mtim.tv_nsec == changed.tv_nsec;
    inode = now.st_ino;
    changed = now.st_mtim;
    return !same;
  }
};

// What is told of requests on /metrics, by upstream's names; of streams, until they begin.
metrics::Family& requests_total = metrics::Counter(
    "rest_client_requests_total", "Number of HTTP requests, partitioned by status code, method, and host.",
    {"code", "method", "host"});
metrics::Family& request_seconds = metrics::Histograms(
    "rest_client_request_duration_seconds", "Request latency in seconds. Broken down by verb, and host.",
    {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}, {"verb", "host"});

std::vector<double> Sizes() {
  return {64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
}
metrics::Family& request_sizes =
    metrics::Histograms("rest_client_request_size_bytes",
                        "Request size in bytes. Broken down by verb and host.", Sizes(), {"verb", "host"});
metrics::Family& response_sizes =
    metrics::Histograms("rest_client_response_size_bytes",
                        "Response size in bytes. Broken down by verb and host.", Sizes(), {"verb", "host"});

class RequestCounts {
 public:
  explicit RequestCounts(std::string server) {
    if (size_t scheme = server.find("//"); scheme != std::string::npos) server.erase(0, scheme + 2);
    host_ = server.substr(0, server.find('/'));
  }

  // status 0: no response.
  void Count(const std::string& method, int status, steady_clock::duration took) const {
    requests_total.With({status > 0 ? std::to_string(status) : "<error>", method, host_}).Increment();
    request_seconds.HistogramWith({method, host_}).Observe(std::chrono::duration<double>(took).count());
  }
  void Sizes(const std::string& method, size_t sent, std::optional<size_t> received) const {
    request_sizes.HistogramWith({method, host_}).Observe(static_cast<double>(sent));
    if (received) response_sizes.HistogramWith({method, host_}).Observe(static_cast<double>(*received));
  }

 private:
  std::string host_;
};

class HttpStream final : public ApiStream {
 public:
  HttpStream(std::shared_ptr<http::Client> client, std::unique_ptr<http::ResponseReader> reader)
      : client_(std::move(client)), reader_(std::move(reader)) {}
  Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) override {
    return reader_->Read(std::move(stop), idle);
  }
  void OnReadable(std::function<void()> readable) override { reader_->OnReadable(std::move(readable)); }

 private:
  std::shared_ptr<http::Client> client_;  // keeps the connection open after a reload
  std::unique_ptr<http::ResponseReader> reader_;
};

// Servers that fail before content negotiation answer in JSON or plain text.
Error ErrorOf(int status, const std::string& body) {
  metav1::Status decoded;
  if (body.compare(0, api::kProtobufMagic.size(), api::kProtobufMagic) == 0) {
    if (api::DecodeProtobuf(body, decoded)) return api::FromStatus(decoded);
  } else if (!body.empty() && body[0] == '{') {
    api::TypeMeta type;
    if (api::DecodeJson(body, decoded, nullptr, &type) && type.kind == "Status") {
      return api::FromStatus(decoded);
    }
  }
  return Error(CodeOf(status, ""), body.empty() ? "the server answered " + std::to_string(status)
                                                : std::string(TrimRight(body, "\r\n ")));
}

class HttpTransport final : public Transport {
 public:
  explicit HttpTransport(const RestConfig& config)
      : counts_(config.server),
        config_(config),
        ca_{config.ca_file},
        certificate_{config.certificate_file},
        key_{config.key_file},
        token_file_{config.token_file},
        token_(config.token) {}

  Result<> Begin() {
    MutexLock lock(mutex_);
    Look();
    KEELSON_RETURN_IF_ERROR(Connect());
    return {};
  }

  Result<ApiResponse> Do(const ApiRequest& request, std::chrono::milliseconds timeout,
                         std::stop_token stop) override {
    http::ClientRequest out;
    std::shared_ptr<http::Client> client = Prepare(request, out);
    const auto begin = steady_clock::now();
    Result<http::ClientResponse> answer = client->Do(out, timeout, std::move(stop));
    counts_.Count(request.method, answer ? answer->status : 0, steady_clock::now() - begin);
    counts_.Sizes(request.method, request.body.size(),
                  answer ? std::optional(answer->body.size()) : std::nullopt);
    if (!answer) return answer.error();
    http::ClientResponse& response = *answer;
    return ApiResponse{response.status, std::string(response.headers.Get("Content-Type")),
                       std::move(response.body)};
  }

  Result<std::unique_ptr<ApiStream>> Open(const ApiRequest& request, std::stop_token stop) override {
    http::ClientRequest out;
    std::shared_ptr<http::Client> client = Prepare(request, out);
    const auto begin = steady_clock::now();
    Result<std::unique_ptr<http::ResponseReader>> opened = client->Open(out, kHeadTimeout, stop);
    counts_.Count(request.method, opened ? (*opened)->status() : 0, steady_clock::now() - begin);
    counts_.Sizes(request.method, request.body.size(), std::nullopt);
    if (!opened) return opened.error();
    std::unique_ptr<http::ResponseReader> reader = std::move(*opened);
    if (reader->status() >= 200 && reader->status() <= 299) {
      return std::unique_ptr<ApiStream>(new HttpStream(std::move(client), std::move(reader)));
    }
    std::string body;
    for (;;) {
      KEELSON_ASSIGN_OR_RETURN(std::string piece, reader->Read(stop, kHeadTimeout));
      if (piece.empty() || body.size() > (1 << 20)) break;
      body += piece;
    }
    return ErrorOf(reader->status(), body);
  }

 private:
  std::shared_ptr<http::Client> Prepare(const ApiRequest& request, http::ClientRequest& out) {
    out.method = request.method;
    out.target = request.target;
    out.body = request.body;
    if (!request.accept.empty()) out.headers.Add("Accept", request.accept);
    if (!request.content_type.empty()) out.headers.Add("Content-Type", request.content_type);
    if (!config_.user_agent.empty()) out.headers.Add("User-Agent", config_.user_agent);
    MutexLock lock(mutex_);
    Refresh();
    if (!token_.empty()) out.headers.Add("Authorization", "Bearer " + token_);
    return client_;
  }

  // Keeps the previous content when a file is unreadable or invalid.
  void Refresh() KEELSON_REQUIRES(mutex_) {
    if (steady_clock::now() - looked_ < kLookEvery) return;
    if (!Look()) return;
    [[maybe_unused]] Result<> kept = Connect();
  }

  // True when certificates have changed.
  bool Look() KEELSON_REQUIRES(mutex_) {
    looked_ = steady_clock::now();
    if (token_file_.Update()) {
      if (Result<std::string> text = ReadFile(token_file_.path)) token_ = TrimRight(*text, "\r\n ");
    }
    bool changed = ca_.Update();
    changed |= certificate_.Update();
    changed |= key_.Update();
    if (!changed) return false;
    auto read = [](const FileMark& file, std::string& pem) {
      if (file.path.empty()) return;
      if (Result<std::string> text = ReadFile(file.path)) pem = std::move(*text);
    };
    read(ca_, config_.ca_pem);
    read(certificate_, config_.certificate_pem);
    read(key_, config_.key_pem);
    return true;
  }

  Result<> Connect() KEELSON_REQUIRES(mutex_) {
    http::ClientOptions options;
    options.base_url = config_.server;
    options.tls.ca_pem = config_.ca_pem;
    options.tls.certificate_pem = config_.certificate_pem;
    options.tls.key_pem = config_.key_pem;
    options.tls.server_name = config_.tls_server_name;
    options.tls.insecure_skip_verify = config_.insecure;
    KEELSON_ASSIGN_OR_RETURN(client_, http::Client::Create(std::move(options)));
    return {};
  }

  Mutex mutex_;
  const RequestCounts counts_;
  RestConfig config_;  // the PEM texts are guarded by the mutex, the rest never changes
  FileMark ca_ KEELSON_GUARDED_BY(mutex_),
      certificate_ KEELSON_GUARDED_BY(mutex_), key_ KEELSON_GUARDED_BY(mutex_);
  FileMark token_file_ KEELSON_GUARDED_BY(mutex_);
  std::string token_ KEELSON_GUARDED_BY(mutex_);
  steady_clock::time_point looked_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<http::Client> client_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::shared_ptr<Transport>> NewHttpTransport(const RestConfig& config) {
  auto transport = std::make_shared<HttpTransport>(config);
  KEELSON_RETURN_IF_ERROR(transport->Begin());
  return std::shared_ptr<Transport>(std::move(transport));
}

}  // namespace keelson::client
