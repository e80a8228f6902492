/** The conversation as it stood after any record: message records are done and undone, one by one. */

import { list, number, object, string } from "./plain.js";

export class History {
  constructor() {
    this.records = [];
    this.undo = []; // of the records that are applied, how to take each back
    this.messages = [];
  }

  add(record) {
    this.records.push(record);
  }

  /** The messages after the record at `place`: each with its role and blocks, and the record that each block is from. */
  at(place) {
    while (this.undo.length > 0 && this.records[this.undo.length - 1].place > place) this.undo.pop()();
    while (this.undo.length < this.records.length && this.records[this.undo.length].place <= place) {
      this.undo.push(this.apply(this.records[this.undo.length]));
    }
    return this.messages;
  }

  apply(record) {
    const { messages } = this;
    if (record.field("op") === "edit") return this.edit(record);
    const index = number(record.field("index"));
    const blocks = list(record.field("blocks")).map((skeleton) => ({ skeleton, record }));
    switch (record.field("op")) {
      case "join": {
        const message = { role: string(record.field("role")), record, blocks };
        messages.splice(index, 0, message);
        return () => messages.splice(messages.indexOf(message), 1);
      }
      case "extend": {
        const message = messages[index];
        if (message === undefined) return () => {};
        const before = message.blocks;
        message.blocks = [...before, ...blocks];
        return () => {
          message.blocks = before;
        };
      }
      case "leave": {
        const gone = messages.splice(index, number(record.field("count")) || 1);
        return () => messages.splice(index, 0, ...gone);
      }
      default:
        return () => {};
    }
  }

  /** Messages give way to others, all at once; places count in the history before that. */
  edit(record) {
    const before = this.messages;
    const after = [];
    let place = 0;
    for (const edit of list(record.field("edits")).map(object)) {
      for (; place < number(edit.start) && place < before.length; place++) after.push(before[place]);
      for (const one of list(edit.messages).map(object)) {
        after.push({ role: string(one.role), record, blocks: list(one.blocks).map((skeleton) => ({ skeleton, record })) });
      }
      place = Math.max(place, number(edit.stop));
    }
    for (; place < before.length; place++) after.push(before[place]);
    this.messages = after;
    return () => {
      this.messages = before;
    };
  }
}
