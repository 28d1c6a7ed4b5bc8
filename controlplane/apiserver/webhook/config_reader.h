// Strict reading of configuration files (YAML or JSON): who misspells a field is told, and nothing is
// ignored. Errors name the field: jwt[0].issuer.url: Required value. Internal to files that read
// configuration.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "lib/base/error.h"

namespace keelson::apiserver {

// One mapping. The first problem sticks; Finish() tells it, or an unknown field.
class ConfigReader {
 public:
  // A whole document, of `kind` and one of `versions` (group included).
  static Result<ConfigReader> Document(const std::string& text, const std::string& kind,
                                       const std::vector<std::string>& versions);
  // The same, whatever it is of: ExpectKind() says.
  static Result<ConfigReader> Mapping(const std::string& text);
  ConfigReader(YAML::Node node, std::string path);

  bool Has(const char* field);
  std::string Text(const char* field, std::string fallback = "");
  std::string Required(const char* field);
  bool Bool(const char* field, bool fallback);
  int32_t Int(const char* field, int32_t fallback);
  std::chrono::milliseconds Duration(const char* field, std::chrono::milliseconds fallback);  // 1m30s, 500ms
  std::vector<std::string> Texts(const char* field);
  ConfigReader Map(const char* field);  // of nothing when absent
  std::vector<ConfigReader> Maps(const char* field);

  // The kind of a part that is a document of its own, in any version of the group.
  void ExpectKind(const std::string& group, const std::string& kind);

  // Where the fault lies elsewhere than in the form.
  void Fail(const char* field, const std::string& why);
  // Takes the problem of a part over.
  void Take(ConfigReader& part);
  Result<> Finish();

 private:
  YAML::Node Find(const char* field);
  std::string PathOf(const char* field) const;

  YAML::Node node_;
  std::string path_, problem_;
  std::set<std::string> known_;
};

// Go's durations: 1h2m3s, 1.5s, 250ms.
Result<std::chrono::milliseconds> ParseDuration(const std::string& text);

}  // namespace keelson::apiserver
