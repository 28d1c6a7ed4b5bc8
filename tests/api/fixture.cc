#include "tests/api/fixture.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "lib/base/file.h"

namespace keelson::apitest {
namespace {

namespace fs = std::filesystem;

// A misspelled key would be a check that never runs.
const std::set<std::string_view> kKeys = {"resource",
                                          "setup",
                                          "create",
                                          "defaults",
                                          "expect",
                                          "generation",
                                          "generation_by_labels",
                                          "again",
                                          "also",
                                          "create_on_update",
                                          "table",
                                          "select",
                                          "steps",
                                          "invalid",
                                          "more",
                                          "copy",
                                          "copies",
                                          "delete",
                                          "warnings",
                                          "followed",
                                          "unconditional",
                                          "unknown_field",
                                          "verbs",
                                          "label_step"};

[[noreturn]] void Die(const std::string& file, const std::string& why) {
  fprintf(stderr, "%s: %s\n", file.c_str(), why.c_str());
  abort();
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

const api::ResourceInfo* FindResource(const std::string& text) {
  size_t last = text.rfind('/');
  if (last == std::string::npos) return nullptr;
  auto [group, version] = api::SplitApiVersion(text.substr(0, last));
  return api::FindResource(group, version, text.substr(last + 1));
}

std::string FixtureName(const std::string& file) {
  fs::path path(file);
  return Replace(path.parent_path().filename().string() + "_" + path.stem().string(), ".", "_");
}

std::string Fixture::Namespace() const {
  std::string out = "t-" + name;
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::vector<std::string> FixtureFiles(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Fixture LoadFixture(const std::string& file) {
  Fixture fixture;
  fixture.name = FixtureName(file);
  Result<std::string> text = ReadFile(file);
  if (!text) Die(file, text.error().message());
  try {
    fixture.text = ParseYaml(Replace(*text, "${ns}", fixture.Namespace())).as_object();
  } catch (const std::exception& error) {
    Die(file, error.what());
  }
  for (const auto& item : fixture.text) {
    if (!kKeys.count(std::string_view(item.key()))) Die(file, "unknown key " + std::string(item.key()));
  }
  fixture.info = FindResource(StringAt(fixture.text, {"resource"}));
  if (!fixture.info) Die(file, "no such resource");
  return fixture;
}

}  // namespace keelson::apitest
