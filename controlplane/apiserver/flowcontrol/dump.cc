#include "controlplane/apiserver/flowcontrol/dump.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "lib/api/codec/text_forms.h"

namespace keelson::apiserver::flowcontrol {
namespace {

using Row = std::vector<std::string>;

// Cells end with a comma; columns are as wide as their widest cell.
std::string Table(const std::vector<Row>& rows) {
  constexpr size_t kMinWidth = 8;
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), kMinWidth);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + 2);
  }
  std::string out;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) out += fmt::format("{:<{}}", row[i] + ",", widths[i]);
    out += row.back() + "\n";
  }
  return out;
}

// RFC 3339 with the shortest exact fraction.
std::string Moment(WallTime time) {
  using namespace std::chrono;
  if (time == WallTime()) return "0001-01-01T00:00:00Z";
  const time_t seconds =
      system_clock::to_time_t(time_point_cast<system_clock::duration>(floor<std::chrono::seconds>(time)));
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string fraction =
      fmt::format(".{:09}", duration_cast<nanoseconds>(time - floor<std::chrono::seconds>(time)).count());
  while (fraction.back() == '0') fraction.pop_back();
  return text + (fraction == "." ? "" : fraction) + "Z";
}

std::string SeatSeconds(double value) { return fmt::format("{:.8f}ss", value); }

Row RequestRow(const Level& level, int place, const Ticket& ticket, bool details) {
  Row row = {level.name,
             ticket.who.schema,
             std::to_string(ticket.queue),
             std::to_string(place),
             ticket.flow,
             Moment(ticket.arrived),
             std::to_string(ticket.work.initial_seats),
             std::to_string(ticket.work.final_seats),
             api::FormatGoDuration(ticket.work.additional.count()),
             Moment(ticket.started)};
  if (!details) return row;
  const RequestInfo& info = ticket.request;
  const std::string version = info.group.empty() ? info.version : info.group + "/" + info.version;
  row.insert(row.end(), {ticket.user, info.verb, info.path, info.ns, info.name, version, info.resource,
                         info.subresource});
  return row;
}

}  // namespace

std::string LevelsTable(const Levels& levels) {
  std::vector<Row> rows = {{"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests",
                            "ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests",
                            "CancelledRequests"}};
  for (const Level* level : levels) {
    const auto active = std::count_if(level->queues.begin(), level->queues.end(),
                                      [](const Level::Queue& queue) { return !queue.waiters.empty(); });
    rows.push_back({level->name, std::to_string(active), level->idle() ? "true" : "false",
                    level->known ? "false" : "true", std::to_string(level->waiting),
                    std::to_string(level->executing.size()), std::to_string(level->dispatched),
                    std::to_string(level->rejected), std::to_string(level->timed_out), "0"});
  }
  return Table(rows);
}

std::string QueuesTable(const Levels& levels) {
  std::vector<Row> rows = {{"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests",
                            "SeatsInUse", "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"}};
  for (const Level* level : levels) {
    for (size_t i = 0; i < level->queues.size(); ++i) {
      const Level::Queue& queue = level->queues[i];
      int initial = 0, most = 0;
      double work = 0;
      for (const TicketPtr& ticket : queue.waiters) {
        initial += ticket->work.initial_seats;
        most += ticket->work.MaxSeats();
        work += ticket->work.SeatSeconds();
      }
      rows.push_back({level->name, std::to_string(i), std::to_string(queue.waiters.size()),
                      std::to_string(queue.executing), std::to_string(queue.seats_in_use),
                      SeatSeconds(queue.turn), std::to_string(initial), std::to_string(most),
                      SeatSeconds(work)});
    }
  }
  return Table(rows);
}

std::string RequestsTable(const Levels& levels, bool details) {
  Row head = {"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher",
              "ArriveTime",        "InitialSeats",   "FinalSeats", "AdditionalLatency",   "StartTime"};
  if (details) {
    head.insert(head.end(), {"UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource",
                             "SubResource"});
  }
  std::vector<Row> rows = {std::move(head)};
  for (const Level* level : levels) {
    for (const Level::Queue& queue : level->queues) {
      int place = 0;
      for (const TicketPtr& ticket : queue.waiters) {
        rows.push_back(RequestRow(*level, place++, *ticket, details));
      }
    }
    for (const TicketPtr& ticket : level->executing) rows.push_back(RequestRow(*level, -1, *ticket, details));
  }
  return Table(rows);
}

}  // namespace keelson::apiserver::flowcontrol
