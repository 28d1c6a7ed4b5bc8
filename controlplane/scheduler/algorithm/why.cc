#include "controlplane/scheduler/algorithm/why.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace keelson::scheduler {

namespace json = boost::json;

json::value ToJson(const Algorithm::Account& account) {
  json::object out;
  if (!account.prefilter.status.ok()) {
    out["refused"] = {{"plugin", account.prefilter.plugin}, {"message", account.prefilter.status.message}};
    return out;
  }
  json::array nodes;
  for (const Algorithm::Account::Node& node : account.nodes) {
    json::object one{{"name", node.name}};
    if (node.refused_by.empty()) {
      json::object scores;
      for (const auto& [plugin, score] : node.scores) scores[plugin] = score;
      one["total"] = node.total;
      one["scores"] = std::move(scores);
    } else {
      one["refusedBy"] = node.refused_by;
      one["reasons"] = json::array(node.reasons.begin(), node.reasons.end());
      if (!node.numbers.empty()) one["numbers"] = node.numbers;
    }
    nodes.push_back(std::move(one));
  }
  out["nodes"] = std::move(nodes);
  return out;
}

http::Handler WhyHandler(std::function<Result<json::value>(const std::string& pod)> why) {
  return [why = std::move(why)](std::shared_ptr<const http::ServerRequest> request,
                                std::shared_ptr<http::ResponseWriter> writer) {
    const auto text = [&](int status, std::string body) {
      writer->Reply(status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body));
    };
    if (request->path != "/debug/why") return text(404, "404 page not found\n");
    if (request->method != "GET") return text(405, "method not allowed\n");
    const Result<json::value> found = why(std::string(request->query.Get("pod")));
    if (!found) return text(HttpStatus(found.error().code()), found.error().message() + "\n");
    writer->Reply(200, {{"Content-Type", "application/json"}}, json::serialize(*found));
  };
}

}  // namespace keelson::scheduler
