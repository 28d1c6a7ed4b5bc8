#include "controlplane/apiserver/audit/auditor.h"

#include <fmt/format.h>

#include "controlplane/apiserver/audit/objects.h"
#include "controlplane/apiserver/request/held_writer.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/codec/text_forms.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver::audit {
namespace {

metrics::Value& events_total =
    metrics::Counter("apiserver_audit_event_total",
                     "Counter of audit events generated and sent to the audit backend.")
        .With();
metrics::Family& errors_total = metrics::Counter("apiserver_audit_error_total",
                                                 "Counter of audit events that failed to be audited "
                                                 "properly. Plugin identifies the plugin affected by the "
                                                 "error.",
                                                 {"plugin"});
metrics::Family& levels_total = metrics::Counter(
    "apiserver_audit_level_total", "Counter of policy levels for audit events (1 per request).", {"level"});
metrics::Value& rejected_total =
    metrics::Counter("apiserver_audit_requests_rejected_total",
                     "Counter of apiserver requests rejected due to an error in audit logging backend.")
        .With();

std::string Quoted(std::string_view text) {
  std::string out;
  api::Sink sink(out);
  api::AppendQuoted(text, sink);
  sink.Finish();
  return out;
}

std::string Stamp(WallTime now) {
  auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  std::string out;
  api::Sink sink(out);
  api::AppendTime({since / 1'000'000'000, static_cast<int32_t>(since % 1'000'000'000)}, true, sink);
  sink.Finish();
  return out;
}

void AppendStrings(const std::vector<std::string>& list, std::string& out) {
  out += '[';
  for (const std::string& item : list) {
    if (&item != &list.front()) out += ',';
    out += Quoted(item);
  }
  out += ']';
}

void AppendUser(const User& user, std::string& out) {
  out += '{';
  out += "\"username\":" + Quoted(user.name);
  if (!user.uid.empty()) out += ",\"uid\":" + Quoted(user.uid);
  if (!user.groups.empty()) {
    out += ",\"groups\":";
    AppendStrings(user.groups, out);
  }
  if (!user.extra.empty()) {
    out += ",\"extra\":{";
    for (auto extra = user.extra.begin(); extra != user.extra.end(); ++extra) {
      if (extra != user.extra.begin()) out += ',';
      out += Quoted(extra->first) + ':';
      AppendStrings(extra->second, out);
    }
    out += '}';
  }
  out += '}';
}

// The client and proxy addresses in headers, then the peer's address.
std::vector<std::string> SourceIps(const http::ServerRequest& request) {
  std::vector<std::string> out;
  auto add = [&](std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    bool is_address =
        !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
    if (is_address && (out.empty() || out.back() != text)) out.emplace_back(text);
  };
  std::string_view forwarded = request.headers.Get("X-Forwarded-For");
  while (!forwarded.empty()) {
    size_t comma = forwarded.find(',');
    add(forwarded.substr(0, comma));
    forwarded = comma == std::string_view::npos ? "" : forwarded.substr(comma + 1);
  }
  if (out.empty()) add(request.headers.Get("X-Real-Ip"));
  std::string_view remote = request.remote_address;
  remote = remote.substr(0, remote.rfind(':'));
  if (!remote.empty() && remote.front() == '[') remote = remote.substr(1, remote.size() - 2);
  add(remote);
  return out;
}

// The outcome of a long-running request; it has ended when this is destroyed.
struct Going {
  explicit Going(std::shared_ptr<Record> the_record) : record(std::move(the_record)) {}
  ~Going() { (void)record->Emit(Stage::kResponseComplete, code); }
  void Started(int status) {
    code = status;
    (void)record->Emit(Stage::kResponseStarted, status);
  }

  const std::shared_ptr<Record> record;
  std::atomic<int> code{0};
};

// The writer of long-running requests: watches, logs, streams.
class Followed : public HeldWriter {
 public:
  Followed(std::shared_ptr<http::ResponseWriter> inner, const std::shared_ptr<Going>& going)
      : HeldWriter(std::move(inner), going), going_(*going) {}

  void Reply(int status, http::Headers headers, std::string body) override {
    going_.code = status;
    HeldWriter::Reply(status, std::move(headers), std::move(body));
  }
  void ReplyShared(int status, http::Headers headers,
                   std::vector<std::shared_ptr<const std::string>> body) override {
    going_.code = status;
    HeldWriter::ReplyShared(status, std::move(headers), std::move(body));
  }
  void Start(int status, http::Headers headers) override {
    going_.Started(status);
    HeldWriter::Start(status, std::move(headers));
  }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers headers) override {
    constexpr int kSwitchingProtocols = 101;
    going_.Started(kSwitchingProtocols);
    return HeldWriter::Upgrade(std::move(headers));
  }

 private:
  Going& going_;
};

}  // namespace

Record::Record(const Auditor& auditor, Verdict verdict, std::string id)
    : auditor_(auditor), verdict_(verdict), id_(std::move(id)) {}

void Record::SetRequest(std::shared_ptr<const http::ServerRequest> request, const RequestInfo& info) {
  request_ = std::move(request);
  info_ = info;
}

void Record::Annotate(std::string_view name, std::string_view value) {
  MutexLock lock(mutex_);
  annotations_.emplace(name, value);
}

void Record::SetStatus(const metav1::Status& status) {
  MutexLock lock(mutex_);
  status_ = status;
}

void Record::SetResponse(std::string_view content_type,
                         const std::vector<std::shared_ptr<const std::string>>& body) {
  if (verdict_.level < Level::kRequestResponse || !info_.is_resource) return;
  std::string text;
  for (const auto& piece : body) text += *piece;
  std::string object = ObjectJson(content_type, text, verdict_.omit_managed_fields);
  MutexLock lock(mutex_);
  response_object_ = std::move(object);
}

// Reads the names from the request body, after it was parsed.
void Record::AddRequestObject() {
  if (std::exchange(request_read_, true) || !info_.is_resource || request_->body.empty()) return;
  std::string_view type = request_->headers.Get("Content-Type");
  bool names = info_.verb == "create" || info_.verb == "update";
  if (verdict_.level < Level::kRequest && !names) return;
  std::string object = ObjectJson(type, request_->body, verdict_.omit_managed_fields);
  if (names) {
    ObjectNames found = NamesOf(object);
    if (info_.name.empty()) info_.name = found.name;
    if (info_.ns.empty()) info_.ns = found.ns;
    uid_ = found.uid;
    version_ = found.version;
  }
  if (verdict_.level >= Level::kRequest) request_object_ = std::move(object);
}

std::string Record::Event(Stage stage, int code) {
  std::string out;
  out.reserve(common_.size() + request_object_.size() + response_object_.size() + 768);
  out += R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":")";
  out += Name(verdict_.level);
  out += R"(","auditID":)" + Quoted(id_) + R"(,"stage":")";
  out += Name(stage);
  out += '"';
  out += common_;
  if (info_.is_resource) {
    std::string ref;
    auto add = [&](std::string_view name, const std::string& value) {
      if (value.empty()) return;
      ref += ref.empty() ? "\"" : ",\"";
      ref.append(name).append("\":").append(Quoted(value));
    };
    add("resource", info_.resource);
    add("namespace", info_.ns);
    add("name", info_.name);
    add("uid", uid_);
    add("apiGroup", info_.group);
    add("apiVersion", info_.version);
    add("resourceVersion", version_);
    add("subresource", info_.subresource);
    out += ",\"objectRef\":{" + ref + '}';
  }
  if (status_) {
    out += ",\"responseStatus\":" + api::EncodeJson(*status_);
  } else if (code != 0) {
    out += fmt::format(",\"responseStatus\":{{\"metadata\":{{}},\"code\":{}}}", code);
  }
  if (!request_object_.empty()) out += ",\"requestObject\":" + request_object_;
  if (!response_object_.empty() && stage == Stage::kResponseComplete) {
    out += ",\"responseObject\":" + response_object_;
  }
  out += ",\"requestReceivedTimestamp\":\"" + received_ + "\",\"stageTimestamp\":\"";
  out += stage == Stage::kRequestReceived ? received_ : Stamp(auditor_.clock_.Now());
  out += '"';
  if (!annotations_.empty()) {
    out += ",\"annotations\":{";
    for (auto it = annotations_.begin(); it != annotations_.end(); ++it) {
      if (it != annotations_.begin()) out += ',';
      out += Quoted(it->first) + ':' + Quoted(it->second);
    }
    out += '}';
  }
  out += '}';
  return out;
}

Result<> Record::Emit(Stage stage, int code) {
  std::string event;
  {
    MutexLock lock(mutex_);
    const unsigned bit = 1u << static_cast<unsigned>(stage);
    constexpr unsigned kComplete = 1u << static_cast<unsigned>(Stage::kResponseComplete);
    if ((emitted_ & (bit | kComplete)) != 0) return {};
    emitted_ |= bit;
    if (verdict_.Omits(stage)) return {};
    if (stage != Stage::kRequestReceived) AddRequestObject();
    event = Event(stage, code);
  }
  return auditor_.Send(stage, std::move(event));
}

Auditor::Auditor(Policy policy, std::vector<Backend> backends, Clock& clock)
    : policy_(std::move(policy)), backends_(std::move(backends)), clock_(clock) {}

Result<std::shared_ptr<Record>> Auditor::Begin(const Subject& subject, std::string id,
                                               std::shared_ptr<const http::ServerRequest> request) const {
  const Verdict verdict = policy_.Evaluate(subject.user, subject.info);
  levels_total.With({std::string(Name(verdict.level))}).Increment();
  if (verdict.level == Level::kNone) return std::shared_ptr<Record>();
  auto record = std::make_shared<Record>(*this, verdict, std::move(id));
  std::string& out = record->common_;
  std::string uri = request->raw_path;
  if (!request->raw_query.empty()) uri += '?' + request->raw_query;
  out += ",\"requestURI\":" + Quoted(uri) + ",\"verb\":" + Quoted(subject.info.verb) + ",\"user\":";
  AppendUser(subject.user ? *subject.user : User(), out);
  if (subject.impersonated) {
    out += ",\"impersonatedUser\":";
    AppendUser(*subject.impersonated, out);
  }
  if (!subject.constraint.empty()) {
    out += ",\"authenticationMetadata\":{\"impersonationConstraint\":" + Quoted(subject.constraint) + "}";
  }
  if (std::vector<std::string> ips = SourceIps(*request); !ips.empty()) {
    out += ",\"sourceIPs\":";
    AppendStrings(ips, out);
  }
  if (std::string_view agent = request->headers.Get("User-Agent"); !agent.empty()) {
    out += ",\"userAgent\":" + Quoted(agent.substr(0, 1024));
  }
  record->received_ = Stamp(clock_.Now());
  record->SetRequest(std::move(request), subject.info);
  KEELSON_RETURN_IF_ERROR(record->Emit(Stage::kRequestReceived, 0));
  return record;
}

std::shared_ptr<http::ResponseWriter> Auditor::Follow(std::shared_ptr<http::ResponseWriter> writer,
                                                      std::shared_ptr<Record> record) {
  return std::make_shared<Followed>(std::move(writer), std::make_shared<Going>(std::move(record)));
}

Result<> Auditor::Send(Stage stage, std::string event) const {
  auto shared = std::make_shared<const std::string>(std::move(event));
  for (const Backend& backend : backends_) {
    events_total.Increment();
    Result<> written = backend.sink->Write({shared});
    if (written) continue;
    errors_total.With({backend.name}).Increment();
    log::Error("Cannot write an audit event", {{"plugin", backend.name}, {"err", written.error()}});
    if (!backend.strict || stage != Stage::kRequestReceived) continue;
    rejected_total.Increment();
    return Error(Code::kInternal, "Internal error occurred: Unable to audit the request");
  }
  return {};
}

bool IsLongRunning(const RequestInfo& info) {
  if (!info.is_resource) return false;
  if (info.verb == "watch") return true;
  for (const char* one : {"attach", "exec", "proxy", "log", "portforward"}) {
    if (info.subresource == one) return true;
  }
  return false;
}

}  // namespace keelson::apiserver::audit
