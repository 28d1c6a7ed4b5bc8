#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/local_transport.h"
#include "controlplane/apiserver/request/audit_id.h"
#include "controlplane/apiserver/request/header_writer.h"
#include "controlplane/apiserver/server_impl.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

std::shared_ptr<Context> MakeContext(std::shared_ptr<const http::ServerRequest> request,
                                     std::shared_ptr<http::ResponseWriter> writer) {
  auto context = std::make_shared<Context>();
  context->request = std::move(request);
  context->audit_id = AuditIdOf(context->request->headers);
  context->writer = std::make_shared<HeaderWriter>(std::move(writer),
                                                   http::Headers{{std::string(kAuditId), context->audit_id}});
  context->info = ParseRequestInfo(context->request->method, context->request->path, context->request->query);
  return context;
}

}  // namespace

void ApiServer::Handle(std::shared_ptr<const http::ServerRequest> request,
                       std::shared_ptr<http::ResponseWriter> writer) {
  const SteadyTime came = SteadyTime::clock::now();
  Result<User> user = impl_->authenticator->Authenticate(*request);
  ObserveFilter("authentication", came);
  std::shared_ptr<Context> context = MakeContext(std::move(request), std::move(writer));
  Result<std::optional<Impersonation>> acting = std::optional<Impersonation>();
  if (user) {
    const SteadyTime begin = SteadyTime::clock::now();
    acting = Impersonate(*user, context->request->headers, context->info, *impl_->authorizer);
    context->user = acting && *acting ? (*acting)->user : *user;
    ObserveFilter("impersonation", begin);
  }
  Result<> begun = impl_->Begin(*context, user ? &*user : nullptr, acting ? *acting : std::nullopt);
  if (begun && user && acting) return impl_->Admit(context, came);
  ReplyError(*context, !begun ? begun.error() : user ? acting.error() : user.error());
  impl_->EndAudit(*context);
}

void ApiServer::HandleAs(const User& user, std::shared_ptr<const http::ServerRequest> request,
                         std::shared_ptr<http::ResponseWriter> writer) {
  const SteadyTime came = SteadyTime::clock::now();
  std::shared_ptr<Context> context = MakeContext(std::move(request), std::move(writer));
  context->user = user;
  if (user.name == kUserApiServer) CountSelfRequest(context->info);
  Result<> begun = impl_->Begin(*context, &context->user, std::nullopt);
  if (begun) return impl_->Serve(context, came);
  ReplyError(*context, begun.error());
  impl_->EndAudit(*context);
}

Result<> ApiServer::Impl::Begin(Context& context, const User* who,
                                const std::optional<Impersonation>& acting) {
  const bool long_running = audit::IsLongRunning(context.info);
  if (options.auditor) {
    audit::Auditor::Subject subject{who, acting ? &acting->user : nullptr,
                                    acting ? std::string_view(acting->constraint) : "", context.info};
    const SteadyTime begin = SteadyTime::clock::now();
    KEELSON_ASSIGN_OR_RETURN(context.audit,
                             options.auditor->Begin(subject, context.audit_id, context.request));
    ObserveFilter("audit", begin);
    if (context.audit && long_running) context.writer = audit::Auditor::Follow(context.writer, context.audit);
  }
  return long_running ? Result<>() : SetDeadline(context, options.limits.timeout);
}

// The writer of a long-running request reports its end.
void ApiServer::Impl::EndAudit(const Context& context) const {
  if (!context.audit) return;
  for (const auto& [name, value] : context.audit_annotations) context.audit->Annotate(name, value);
  if (!audit::IsLongRunning(context.info)) {
    (void)context.audit->Emit(audit::Stage::kResponseComplete, context.status);
  }
}

// Runs now, later or never, depending on the load. Streams have no seats; watches only during their start.
void ApiServer::Impl::Admit(const std::shared_ptr<Context>& context, SteadyTime came) {
  const RequestInfo& info = context->info;
  if (audit::IsLongRunning(info) && info.verb != "watch") return Serve(context, came);
  if (!options.limits.priority_and_fairness) {
    MaxInFlightLimit& limit = IsMutating(info) ? mutating : read_only;
    if (context->user.InGroup(kGroupMasters)) return Serve(context, came);
    if (!limit.Enter()) return Refuse(*context, came);
    Serve(context, came);
    return limit.Leave();
  }
  auto classify = [context](const flowcontrol::Classified& who) {
    if (who.level.empty()) return;
    context->writer = std::make_shared<HeaderWriter>(
        std::move(context->writer), http::Headers{{"X-Kubernetes-PF-FlowSchema-UID", who.schema_uid},
                                                  {"X-Kubernetes-PF-PriorityLevel-UID", who.level_uid}});
  };
  flow.Handle(
      context->user, info, context->query(),
      [this, context, classify, came](const flowcontrol::Classified& who) {
        classify(who);
        if (!context->writer->closed()) Serve(context, came);
      },
      [this, context, classify, came](const flowcontrol::Classified& who) {
        classify(who);
        Refuse(*context, came);
      });
}

void ApiServer::Impl::Refuse(Context& context, SteadyTime came) {
  ReplyTooManyRequests(context);
  request_metrics.Record(context, SteadyTime::clock::now() - came, {});
  EndAudit(context);
}

void ApiServer::Impl::Serve(const std::shared_ptr<Context>& context, SteadyTime came) {
  const bool long_running = audit::IsLongRunning(context->info);
  metrics::Value& inflight = request_metrics.Inflight(context->info);
  if (!long_running) inflight.Add(1);
  const SteadyTime begin = SteadyTime::clock::now();
  auto complete = [this, context, came, begin, long_running, &inflight] {
    if (!long_running) inflight.Add(-1);
    const SteadyTime end = SteadyTime::clock::now();
    request_metrics.Record(*context, end - came, end - begin);
    EndAudit(*context);
  };
  bool complete_now = true;
  Guarded(*context, [&] { complete_now = Dispatch(context, complete); });
  if (complete_now) complete();
}

void ApiServer::Impl::Guarded(Context& context, const std::function<void()>& handle) {
  try {
    handle();
  } catch (const std::exception& error) {
    log::Error("Request failed unexpectedly", {{"path", context.info.path}, {"err", error.what()}});
    if (context.audit) (void)context.audit->Emit(audit::Stage::kPanic, 500);
    if (context.status == 0) ReplyError(context, Error(Code::kInternal, "Internal error occurred"));
  }
}

std::shared_ptr<client::Transport> ApiServer::TransportFor(User user, std::string user_agent) {
  return NewLocalTransport(
      [this, user = std::move(user)](std::shared_ptr<const http::ServerRequest> request,
                                     std::shared_ptr<http::ResponseWriter> writer) {
        HandleAs(user, std::move(request), std::move(writer));
      },
      std::move(user_agent));
}

}  // namespace keelson::apiserver
