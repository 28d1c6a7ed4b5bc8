// The client of one extender. Messages are the types of k8s.io/kube-scheduler/extender/v1 as Go writes them,
// with the fields' own names; as in Go, names are read in any case.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "controlplane/scheduler/config/config.h"
#include "controlplane/scheduler/types/pod_info.h"
#include "lib/base/error.h"
#include "lib/http/client/client.h"

namespace keelson::scheduler {

// The source of the whole objects in requests. Called on the thread of the request.
struct ExtenderObjects {
  std::function<std::shared_ptr<const corev1::Pod>(const PodInfo&)> pod;      // null: it is gone
  std::function<std::shared_ptr<const corev1::Node>(std::string_view)> node;  // null: it is gone
};

// A field of an answer; null when it is absent or null, or `value` is no object.
const boost::json::value* Field(const boost::json::value& value, std::string_view name);
std::string TextField(const boost::json::value& value, std::string_view name);  // "" when absent

class ExtenderClient {
 public:
  // kInvalid: a URL or a certificate.
  static Result<std::unique_ptr<ExtenderClient>> Create(const ExtenderConfig& config, ExtenderObjects objects,
                                                        std::stop_token stop);

  const ExtenderConfig& config() const { return config_; }
  // Whether the extender manages a resource that the pod requests, or manages all pods.
  bool IsInterested(const PodInfo& pod) const;

  // POSTs `body` to the verb and returns the answer. Blocks up to the configured timeout. kUnavailable: there is
  // no valid answer, or it is an error.
  Result<boost::json::value> Call(const std::string& verb, const boost::json::value& body) const;
  // The pod as JSON. kNotFound: it is gone.
  Result<boost::json::value> PodObject(const PodInfo& pod) const;
  // The ExtenderArgs of a pod and nodes. kNotFound: the pod is gone.
  Result<boost::json::value> NodeArguments(const PodInfo& pod,
                                           const std::vector<std::string_view>& nodes) const;

 private:
  ExtenderClient(const ExtenderConfig& config, ExtenderObjects objects, std::stop_token stop)
      : config_(config), objects_(std::move(objects)), stop_(std::move(stop)) {}

  const ExtenderConfig config_;
  const ExtenderObjects objects_;
  const std::stop_token stop_;
  std::string path_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace keelson::scheduler
