// A fixture: objects, expected responses and errors of one resource, written in YAML. README.md describes the
// keys.
#pragma once

#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "tests/api/json_value.h"

namespace keelson::apitest {

struct Fixture {
  std::string name;                         // core_configmaps
  const api::ResourceInfo* info = nullptr;  // never null once loaded
  json::object text;

  const json::value* Find(std::string_view key) const { return text.if_contains(key); }
  bool Flag(std::string_view key, bool otherwise) const {
    const json::value* value = Find(key);
    return value && value->is_bool() ? value->as_bool() : otherwise;
  }
  std::string Namespace() const;  // its own; empty for cluster-scoped resources without `namespace`
  const json::object& Create() const { return Find("create")->as_object(); }
};

// Parses apps/v1/deployments or v1/pods; null when unknown.
const api::ResourceInfo* FindResource(const std::string& text);

// Lists all files below `directory`, sorted. LoadFixture() aborts with the file's name on an error.
std::vector<std::string> FixtureFiles(const std::string& directory);
Fixture LoadFixture(const std::string& file);
std::string FixtureName(const std::string& file);  // core/configmaps.yaml -> core_configmaps

}  // namespace keelson::apitest
