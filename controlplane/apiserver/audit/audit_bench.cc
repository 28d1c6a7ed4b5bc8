// The cost of auditing for the thread that handles the request.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/request/audit_id.h"

namespace keelson::apiserver::audit {
namespace {

Auditor Make(const char* level) {
  auto policy = Policy::Parse(std::string("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: "
                                          "[RequestReceived]\nrules:\n- level: ") +
                              level);
  auto log = NewLogSink({"/dev/null", int64_t{1} << 60, 0, {}, false});
  if (!policy || !log) std::abort();
  std::vector<Auditor::Backend> backends;
  backends.push_back({"log", std::move(*log)});
  return Auditor(std::move(*policy), std::move(backends));
}

void Get(benchmark::State& state, const char* level) {
  Auditor auditor = Make(level);
  auto request = std::make_shared<http::ServerRequest>();
  request->method = "GET";
  request->path = request->raw_path = "/api/v1/namespaces/default/pods/web-1";
  request->headers = {{"User-Agent", "kubelet/v1.36"}, {"Accept", "application/json"}};
  request->remote_address = "10.0.0.7:41234";
  const User user{"system:node:n7", "", {"system:nodes", "system:authenticated"}, {}};
  const RequestInfo info = ParseRequestInfo(request->method, request->path, request->query);
  for (auto _ : state) {
    auto record = auditor.Begin({&user, nullptr, "", info}, AuditIdOf(request->headers), request);
    if (!*record) continue;
    (*record)->Annotate("authorization.k8s.io/decision", "allow");
    (*record)->Annotate("authorization.k8s.io/reason", "");
    (void)(*record)->Emit(Stage::kResponseComplete, 200);
  }
}
BENCHMARK_CAPTURE(Get, None, "None");
BENCHMARK_CAPTURE(Get, Metadata, "Metadata");

}  // namespace
}  // namespace keelson::apiserver::audit
