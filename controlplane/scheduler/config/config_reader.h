// Reads a JSON document field by field: types are checked, what nobody has asked for is unknown, and every
// mistake goes to one list with its path.
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
  // `value` is to be an object; null reads as an empty one.
  ConfigReader(const boost::json::value& value, std::string path, std::vector<std::string>& problems);
  ~ConfigReader();  // reports unknown fields
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // Leave `out` as it is where the field is absent or null.
  void Read(const char* field, std::string& out);
  void Read(const char* field, bool& out);
  void Read(const char* field, int64_t& out);
  void Read(const char* field, int& out);
  void Read(const char* field, std::vector<std::string>& out);
  // "5s", "1m30s".
  void ReadDuration(const char* field, std::chrono::milliseconds& out);
  void Object(const char* field, const std::function<void(ConfigReader&)>& read);
  void List(const char* field, const std::function<void(ConfigReader&)>& read_item);
  // For what others parse; null when absent.
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
