#include "controlplane/scheduler/config/config_reader.h"

#include <fmt/format.h>

#include "lib/api/duration.h"

namespace keelson::scheduler {

namespace json = boost::json;

ConfigReader::ConfigReader(const json::value& value, std::string path, std::vector<std::string>& problems)
    : path_(std::move(path)), problems_(problems) {
  if (value.is_object()) {
    object_ = &value.get_object();
  } else if (!value.is_null()) {
    problems_.push_back(fmt::format("{}: Invalid value: must be an object", path_));
  }
}

ConfigReader::~ConfigReader() {
  if (!object_) return;
  for (const auto& [key, value] : *object_) {
    if (!asked_.contains(std::string_view(key.data(), key.size()))) {
      problems_.push_back(fmt::format("unknown field \"{}\"", PathOf({key.data(), key.size()})));
    }
  }
}

std::string ConfigReader::PathOf(std::string_view field) const {
  return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
}

void ConfigReader::Problem(std::string_view field, std::string_view what) {
  problems_.push_back(fmt::format("{}: {}", PathOf(field), what));
}

const json::value* ConfigReader::Find(const char* field) {
  asked_.insert(field);
  if (!object_) return nullptr;
  const json::value* value = object_->if_contains(field);
  return value && !value->is_null() ? value : nullptr;
}

const json::value* ConfigReader::Raw(const char* field) { return Find(field); }

void ConfigReader::Ignore(std::initializer_list<const char*> fields) {
  for (const char* field : fields) asked_.insert(field);
}

void ConfigReader::Read(const char* field, std::string& out) {
  const json::value* value = Find(field);
  if (!value) return;
  if (!value->is_string()) return Problem(field, "Invalid value: must be a string");
  out = std::string(value->get_string());
}

void ConfigReader::Read(const char* field, bool& out) {
  const json::value* value = Find(field);
  if (!value) return;
  if (!value->is_bool()) return Problem(field, "Invalid value: must be true or false");
  out = value->get_bool();
}

void ConfigReader::Read(const char* field, int64_t& out) {
  const json::value* value = Find(field);
  if (!value) return;
  boost::system::error_code error;
  const auto number = value->to_number<int64_t>(error);
  if (error) return Problem(field, "Invalid value: must be a whole number");
  out = number;
}

void ConfigReader::Read(const char* field, int& out) {
  int64_t number = out;
  Read(field, number);
  if (number < INT32_MIN || number > INT32_MAX) return Problem(field, "Invalid value: out of range");
  out = static_cast<int>(number);
}

void ConfigReader::Read(const char* field, std::vector<std::string>& out) {
  const json::value* value = Find(field);
  if (!value) return;
  if (!value->is_array()) return Problem(field, "Invalid value: must be a list");
  out.clear();
  for (const json::value& item : value->get_array()) {
    if (!item.is_string()) return Problem(field, "Invalid value: must be a list of strings");
    out.emplace_back(item.get_string());
  }
}

void ConfigReader::ReadDuration(const char* field, std::chrono::milliseconds& out) {
  std::string text;
  Read(field, text);
  if (text.empty()) return;
  const auto parsed = api::ParseGoDuration(text);
  if (!parsed) return Problem(field, fmt::format("Invalid value: \"{}\": must be a duration", text));
  out = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(*parsed));
}

void ConfigReader::Object(const char* field, const std::function<void(ConfigReader&)>& read) {
  const json::value* value = Find(field);
  if (!value) return;
  ConfigReader inner(*value, PathOf(field), problems_);
  read(inner);
}

void ConfigReader::List(const char* field, const std::function<void(ConfigReader&)>& read_item) {
  const json::value* value = Find(field);
  if (!value) return;
  if (!value->is_array()) return Problem(field, "Invalid value: must be a list");
  size_t i = 0;
  for (const json::value& item : value->get_array()) {
    ConfigReader inner(item, fmt::format("{}[{}]", PathOf(field), i++), problems_);
    read_item(inner);
  }
}

}  // namespace keelson::scheduler
