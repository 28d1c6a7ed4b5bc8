#include "controlplane/audit_setup.h"

#include <algorithm>

#include "lib/api/codec/text_forms.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::controlplane {
namespace {

namespace audit = apiserver::audit;

Result<std::chrono::milliseconds> DurationOf(const std::string& text, std::string_view flag) {
  Result<int64_t> nanos = api::ParseGoDuration(text);
  if (!nanos || *nanos < 0) {
    return Error(Code::kInvalid, std::string(flag) + ": \"" + text + "\" is no duration");
  }
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(*nanos));
}

Result<audit::Auditor::Backend> Backend(const std::string& name, const AuditBatchOptions& options,
                                        std::unique_ptr<audit::Sink> sink) {
  if (options.truncate) {
    if (options.truncate_max_event <= 0 || options.truncate_max_batch < options.truncate_max_event) {
      return Error(Code::kInvalid,
                   "--audit-" + name + "-truncate-max-batch-size must be at least the maximum event size");
    }
    sink = audit::NewTruncateSink(
        name,
        {static_cast<size_t>(options.truncate_max_event), static_cast<size_t>(options.truncate_max_batch)},
        std::move(sink));
  }
  if (options.mode != "batch") {
    return audit::Auditor::Backend{name, std::move(sink), options.mode == "blocking-strict"};
  }
  if (options.buffer_size <= 0 || options.max_size <= 0) {
    return Error(Code::kInvalid, "--audit-" + name + "-batch-* sizes must be positive");
  }
  audit::BatchOptions batch;
  batch.buffer = static_cast<size_t>(options.buffer_size);
  batch.max_size = static_cast<size_t>(std::min(options.max_size, options.buffer_size));
  KEELSON_ASSIGN_OR_RETURN(batch.max_wait,
                           DurationOf(options.max_wait, "--audit-" + name + "-batch-max-wait"));
  batch.qps = options.throttle ? options.throttle_qps : 0;
  batch.burst = std::max(1, options.throttle_burst);
  return audit::Auditor::Backend{name, audit::NewBatchSink(name, batch, std::move(sink)), false};
}

Result<audit::LogOptions> LogOf(const AuditOptions& options) {
  constexpr int64_t kMegabyte = 1 << 20;
  audit::LogOptions log;
  log.path = options.log_path;
  log.max_bytes = (options.log_max_megabytes > 0 ? options.log_max_megabytes : 100) * kMegabyte;
  log.max_backups = options.log_max_backups;
  log.max_age = std::chrono::hours(24) * options.log_max_age_days;
  log.compress = options.log_compress;
  log.legacy = options.log_format == "legacy";
  return log;
}

// The server's URL may have a path.
std::string PathOf(const std::string& url) {
  size_t host = url.find("://");
  size_t slash = url.find('/', host == std::string::npos ? 0 : host + 3);
  return slash == std::string::npos ? "/" : url.substr(slash);
}

}  // namespace

Result<std::unique_ptr<audit::Auditor>> MakeAuditor(const AuditOptions& options) {
  std::unique_ptr<audit::Auditor> none;
  if (options.policy_file.empty()) {
    if (!options.log_path.empty() || !options.webhook_config_file.empty()) {
      log::Warn("Nothing is audited: there is no --audit-policy-file");
    }
    return none;
  }
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(options.policy_file));
  Result<audit::Policy> policy = audit::Policy::Parse(text);
  if (!policy) return policy.error().Wrap("loading audit policy file " + options.policy_file);
  std::vector<audit::Auditor::Backend> backends;
  if (!options.log_path.empty()) {
    KEELSON_ASSIGN_OR_RETURN(audit::LogOptions log, LogOf(options));
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<audit::Sink> sink, audit::NewLogSink(std::move(log)));
    KEELSON_ASSIGN_OR_RETURN(audit::Auditor::Backend backend,
                             Backend("log", options.log_batch, std::move(sink)));
    backends.push_back(std::move(backend));
  }
  if (!options.webhook_config_file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(client::RestConfig config, client::LoadKubeconfig(options.webhook_config_file));
    KEELSON_ASSIGN_OR_RETURN(auto backoff,
                             DurationOf(options.webhook_initial_backoff, "--audit-webhook-initial-backoff"));
    const std::string target = PathOf(config.server);
    if (target != "/") config.server.resize(config.server.size() - target.size());
    KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(config));
    KEELSON_ASSIGN_OR_RETURN(audit::Auditor::Backend backend,
                             Backend("webhook", options.webhook_batch,
                                     audit::NewWebhookSink(std::move(transport), target, backoff)));
    backends.push_back(std::move(backend));
  }
  if (backends.empty()) return none;
  return std::make_unique<audit::Auditor>(std::move(*policy), std::move(backends));
}

}  // namespace keelson::controlplane
