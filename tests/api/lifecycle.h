// Runs the common life cycle of a resource, and compares each response with the fixture.
#pragma once

#include <string>
#include <vector>

#include "tests/api/api_client.h"
#include "tests/api/fixture.h"

namespace keelson::apitest {

// Runs one fixture once. Failures are reported through gtest, and the run continues.
class Lifecycle {
 public:
  Lifecycle(ApiClient& client, const Fixture& fixture);
  void Run();

 private:
  // The expected state of the object.
  struct Expected {
    json::object object;     // without server-generated fields
    int64_t generation = 0;  // 0: the kind does not count
  };
  struct Event {
    std::string type;
    json::value object;
  };

  // lifecycle.cc
  bool Prepare();
  bool Create();
  void CreateMore();
  void Collection();
  void Delete();
  void Remove(const std::string& name);
  // lifecycle_reads.cc
  void Reads();
  void OtherVersions(const json::array& versions);
  void Lists();
  void TableRows();
  void Selectors();
  void Replay();
  // lifecycle_writes.cc
  void BadRequests();
  void Steps();
  void Step(const json::object& step, const std::string& where);
  void CheckApplier(const json::object& step, const json::value& now, const std::string& where);
  Reply Send(const json::object& step);
  void Unchanged();
  void Conflicts();
  void Invalid();
  void InvalidCase(const json::object& one, const std::string& where);

  // Checks `got` against `expected`, and the format of server-generated fields.
  void CheckObject(const Expected& expected, const json::value& got, const std::string& where,
                   bool in_list = false);
  void CheckManagers(const json::value& got, const std::string& where);
  void Note(const std::string& type, const json::value& object);
  // The expected object after creating `create`.
  Expected ExpectedOf(const json::object& fixture, const json::object& create) const;
  json::object Copy(const std::string& suffix) const;
  // The object's path, with query parameters.
  std::string Path(const std::string& name = "", const std::string& subresource = "") const;
  json::value Live();

  ApiClient& client_;
  const Fixture& fixture_;
  const api::ResourceInfo& info_;
  std::string ns_, name_;
  std::string first_version_;  // of the collection, before the first write
  Expected expected_;
  json::value live_;  // the response of the last write to the object
  std::vector<Event> history_;
};

// Reports the differences as one failure.
void Report(const std::string& where, const std::vector<std::string>& differences);
void ExpectStatus(const Reply& reply, int status, const std::string& where);

}  // namespace keelson::apitest
