#include "cni/agent/pages.h"

#include <memory>
#include <string>
#include <utility>

#include "lib/http/server/metrics_page.h"
#include "lib/http/server/server_service.h"
#include "lib/metrics/metrics.h"

namespace keelson::cni::agent {
namespace {

std::string FirstComplaint(const std::vector<const Health*>& healths) {
  for (const Health* health : healths) {
    if (std::string complaint = health->Complaint(); !complaint.empty()) return complaint;
  }
  return "";
}

http::Handler Pages(std::vector<const Health*> healths, PolicyCounters* counters) {
  return [healths = std::move(healths), counters](std::shared_ptr<const http::ServerRequest> request,
                                                  std::shared_ptr<http::ResponseWriter> writer) {
    const http::Headers text = {{"Content-Type", "text/plain; charset=utf-8"}};
    if (request->path == "/healthz" || request->path == "/livez") {
      const std::string complaint = FirstComplaint(healths);
      writer->Reply(complaint.empty() ? 200 : 503, text, complaint.empty() ? "ok" : complaint + "\n");
    } else if (request->path == "/metrics") {
      if (counters) counters->Collect();
      http::ReplyMetrics(*request, *writer, metrics::Print());
    } else {
      writer->Reply(404, text, "404 page not found\n");
    }
  };
}

}  // namespace

void AddPages(ServiceGroup& group, const Config& config, std::vector<const Health*> healths,
              PolicyCounters* counters) {
  const http::Handler pages = Pages(std::move(healths), counters);
  http::AddServer(group, "healthz", config.healthz.host, config.healthz.port, pages);
  const bool shared =
      config.metrics.host == config.healthz.host && config.metrics.port == config.healthz.port;
  if (!shared) http::AddServer(group, "metrics", config.metrics.host, config.metrics.port, pages);
}

}  // namespace keelson::cni::agent
