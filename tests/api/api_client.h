// Sends requests to the server under test, and decodes responses of any format to JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "tests/api/json_value.h"
#include "tests/apiserver/cluster.h"

namespace keelson::apitest {

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kYaml = "application/yaml";
inline constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";

struct Reply {
  int status = 0;
  std::string content_type, body;
  std::vector<std::string> warnings;  // the text of 299 warnings
  json::value value;                  // from a JSON, YAML or protobuf body

  std::string message() const { return StringAt(value, {"message"}); }
};

class ApiClient {
 public:
  explicit ApiClient(apiserver::TestCluster& cluster);

  // Sends `body` as `content_type`, and decodes the response by its content type. `descriptor`: the message
  // type of a protobuf response.
  Reply Do(const std::string& method, const std::string& target, const std::string& body = "",
           const std::string& content_type = kJson, const std::string& accept = kJson);
  Reply Get(const std::string& target, const std::string& accept = kJson) {
    return Do("GET", target, "", kJson, accept);
  }

  // Returns the first `count` events of a watch as {type, object}; fewer when none arrives within two
  // seconds.
  std::vector<json::value> Watch(const std::string& target, size_t count, const std::string& accept = kJson);

 private:
  std::unique_ptr<http::Client> client_;
};

// The path of a resource: /apis/apps/v1/namespaces/x/deployments/name/status, without empty parts.
std::string PathOf(const api::ResourceInfo& info, const std::string& name_space, const std::string& name = "",
                   const std::string& subresource = "");
// The path to create objects of this kind.
std::string PathOfObject(const json::object& object, const std::string& name_space);

// Converts JSON to application/vnd.kubernetes.protobuf.
std::string ToProtobuf(const json::object& object);
// Converts a protobuf envelope to JSON, by its kind.
json::value FromProtobuf(std::string_view bytes);

}  // namespace keelson::apitest
