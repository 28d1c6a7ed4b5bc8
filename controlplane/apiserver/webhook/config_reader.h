// Strict parsing of configuration files (YAML or JSON): unknown fields are errors. Messages name the field:
// jwt[0].issuer.url: Required value. Internal to files that read configuration.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "lib/base/error.h"

namespace keelson::apiserver {

// One mapping. The first problem is kept; Finish() returns it, or an unknown field.
class ConfigReader {
 public:
  // Parses a document of `kind` in one of `versions` (including the group).
  static Result<ConfigReader> Document(const std::string& text, const std::string& kind,
                                       const std::vector<std::string>& versions);
  // Parses a document of any kind; check it with ExpectKind().
  static Result<ConfigReader> Mapping(const std::string& text);
  ConfigReader(YAML::Node node, std::string path);

  bool Has(const char* field);
  std::string Text(const char* field, std::string fallback = "");
  std::string Required(const char* field);
  bool Bool(const char* field, bool fallback);
  int32_t Int(const char* field, int32_t fallback);
  std::chrono::milliseconds Duration(const char* field, std::chrono::milliseconds fallback);  // 1m30s, 500ms
  std::vector<std::string> Texts(const char* field);
  ConfigReader Map(const char* field);  // empty when missing
  std::vector<ConfigReader> Maps(const char* field);

  // Expects an embedded document of that kind, in any version of the group.
  void ExpectKind(const std::string& group, const std::string& kind);

  // Records a problem that the parser itself does not detect.
  void Fail(const char* field, const std::string& why);
  // Takes over the problem of a part.
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
