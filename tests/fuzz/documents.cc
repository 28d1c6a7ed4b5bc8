#include "tests/fuzz/documents.h"

#include <boost/json/parse.hpp>

namespace keelson::fuzz {

const char* const kPod = R"({"kind":"Pod","apiVersion":"v1",
"metadata":{"name":"p","namespace":"default","labels":{"app":"web","tier":"1"},"finalizers":["a/b","c/d"],
  "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}]},
"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","hostPath":{"path":"/w"}}],
  "containers":[{"name":"a","image":"x","env":[{"name":"E","value":"1"}],
      "ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]},
    {"name":"b","image":"y","command":["sh","-c"]}],
  "tolerations":[{"key":"k"}],"nodeSelector":{"a":"b"}},
"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})";

const json::value& Document() {
  static const json::value* const document = new json::value(json::parse(kPod));
  return *document;
}

bool Parse(std::string_view text, json::value& out) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 1000;
  out = json::parse(text, error, {}, options);
  return !error;
}

}  // namespace keelson::fuzz
