// Reads a JSON document field by field. It checks types, reports the fields that nobody has read as unknown, and
// adds every mistake with its path to one list.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

namespace keelson::scheduler {

class ConfigReader {
 public:
  // `value` must be an object; null reads as an empty one. References outlive the reader.
  ConfigReader(const boost::json::value& value, std::string path, std::vector<std::string>& problems);
  ~ConfigReader();  // reports unknown fields
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // These leave `out` unchanged when the field is absent or null.
  void Read(const char* field, std::string& out);
  void Read(const char* field, bool& out);
  void Read(const char* field, int64_t& out);
  void Read(const char* field, int& out);
  void Read(const char* field, std::vector<std::string>& out);
  // "5s", "1m30s".
  void ReadDuration(const char* field, std::chrono::milliseconds& out);
  void Object(const char* field, const std::function<void(ConfigReader&)>& read);
  void List(const char* field, const std::function<void(ConfigReader&)>& read_item);
  // The field itself, for other parsers; null when absent.
  const boost::json::value* Raw(const char* field);
  void Ignore(std::initializer_list<const char*> fields);

  void Problem(std::string_view field, std::string_view what);  // "path.field: what"
  const std::string& path() const { return path_; }

 private:
  const boost::json::value* Find(const char* field);
  std::string PathOf(std::string_view field) const;

  const boost::json::object* object_ = nullptr;
  const std::string path_;
  std::vector<std::string>& problems_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace keelson::scheduler
