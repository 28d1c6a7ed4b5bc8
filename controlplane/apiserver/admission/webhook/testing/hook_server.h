// For tests: an HTTPS server of admission webhooks. Each path has a function from the review's request to the
// members of the response.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "controlplane/apiserver/testing/https_service.h"
#include "lib/base/base64.h"

namespace keelson::apiserver {

class HookServer {
 public:
  // "$UID" in what it returns becomes the request's; empty: allowed.
  using Function = std::function<std::string(const boost::json::value& request)>;

  HookServer() : service_([this](const http::ServerRequest& request) { return Serve(request); }) {}

  void On(const std::string& path, Function function) {
    std::lock_guard lock(mutex_);
    functions_[path] = std::move(function);
  }
  // Answers with these bytes.
  void OnRaw(const std::string& path, HttpsService::Answer answer) {
    std::lock_guard lock(mutex_);
    raw_[path] = std::move(answer);
  }
  // The requests (of the reviews) that came for a path, in order.
  std::vector<boost::json::value> Seen(const std::string& path) const {
    std::lock_guard lock(mutex_);
    auto found = seen_.find(path);
    return found == seen_.end() ? std::vector<boost::json::value>() : found->second;
  }
  std::string LastQuery() const {
    std::lock_guard lock(mutex_);
    return last_query_;
  }
  const HttpsService& service() const { return service_; }

  static std::string Patch(const std::string& operations) {
    return R"("allowed":true,"patchType":"JSONPatch","patch":")" + EncodeBase64(operations) + "\"";
  }

 private:
  HttpsService::Answer Serve(const http::ServerRequest& request) {
    const boost::json::value review = boost::json::parse(request.body);
    Function function;
    {
      std::lock_guard lock(mutex_);
      seen_[request.path].push_back(review.at("request"));
      last_query_ = request.raw_query;
      if (auto found = raw_.find(request.path); found != raw_.end()) return found->second;
      if (auto found = functions_.find(request.path); found != functions_.end()) function = found->second;
    }
    std::string members = function ? function(review.at("request")) : "";
    if (members.empty()) members = R"("allowed":true)";
    const std::string uid(review.at("request").at("uid").as_string());
    const std::string version(review.at("apiVersion").as_string());
    return {200, R"({"kind":"AdmissionReview","apiVersion":")" + version + R"(","response":{"uid":")" + uid +
                     "\"," + members + "}}"};
  }

  mutable std::mutex mutex_;
  std::map<std::string, Function> functions_;
  std::map<std::string, HttpsService::Answer> raw_;
  std::map<std::string, std::vector<boost::json::value>> seen_;
  std::string last_query_;
  HttpsService service_;  // last: it uses the rest
};

}  // namespace keelson::apiserver
